// The server: questions with the token of this start, progress line by line, errors as sentences.

export type Asking = { signal?: AbortSignal; onprogress?: (share: number) => void };

/** What the server says when there is no result. */
export class ServerError extends Error {
  constructor(
    sentence: string,
    readonly status: number,
  ) {
    super(sentence);
  }
}

const TOKEN = 'glassformer-token';

/** The token of the printed address, taken out of the fragment and kept for other tabs. */
export function takeToken(): string {
  const parts = new URLSearchParams(location.hash.replace(/^#/, ''));
  const given = parts.get('token');
  if (given === null) return localStorage.getItem(TOKEN) ?? '';
  localStorage.setItem(TOKEN, given);
  parts.delete('token');
  history.replaceState(null, '', `#${parts}`);
  return given;
}

export class Server {
  constructor(
    private readonly token: string,
    private readonly silence: () => string, // what is said when nobody answers
  ) {}

  /** What a job answers. */
  async ask<T>(job: string, body: unknown, { signal, onprogress }: Asking = {}): Promise<T> {
    const response = await this.send(`/api/${job}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/x-ndjson' },
      body: JSON.stringify(body),
      signal,
    });
    let last: { result?: T; error?: string; status?: number } = {};
    for await (const line of lines(response)) {
      last = JSON.parse(line);
      if ('progress' in last) onprogress?.(last.progress as number);
    }
    if ('result' in last) return last.result as T;
    throw new ServerError(last.error ?? this.silence(), last.status ?? 0);
  }

  /** What lies at an address of the server. */
  async get<T>(address: string): Promise<T> {
    const response = await this.send(address, {});
    return (await response.json()) as T;
  }

  private async send(address: string, options: RequestInit): Promise<Response> {
    const headers = { ...options.headers, 'x-glassformer-token': this.token };
    let response: Response;
    try {
      response = await fetch(address, { ...options, headers, cache: 'no-store' });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new ServerError(this.silence(), 0);
    }
    if (response.ok) return response;
    const said = await response.json().catch(() => ({}));
    throw new ServerError(said.error ?? response.statusText, response.status);
  }
}

/** The lines of an answer, as they arrive. */
async function* lines(response: Response): AsyncGenerator<string> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const pieces = (rest + value).split('\n');
    rest = pieces.pop()!;
    yield* pieces;
  }
  if (rest !== '') yield rest;
}

/** Whether somebody has only stopped waiting. */
export const isGivenUp = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'AbortError';
