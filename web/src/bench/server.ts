// The server: questions with the token of this start, progress line by line, errors as sentences.

export type Asking = {
  signal?: AbortSignal;
  onprogress?: (share: number) => void;
  onpartial?: (known: unknown) => void; // what some jobs know before the end
};

/** What the server says when there is no result. */
export class ServerError extends Error {
  constructor(
    sentence: string,
    readonly status: number,
  ) {
    super(sentence);
  }
}

/** Faults that are nobody's mistake: what was asked may well be answered when it is asked again. */
const PASSING = [0, 401, 500, 503];

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
  onfail: (error: ServerError) => void = () => {}; // something failed that may succeed later

  constructor(
    private token: string,
    private readonly silence: () => string, // what is said when nobody answers
    private readonly stale: () => string, // and when another server than before does
  ) {}

  /** What a job answers. */
  async ask<T>(job: string, body: unknown, { signal, onprogress, onpartial }: Asking = {}): Promise<T> {
    const response = await this.send(`/api/${job}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/x-ndjson' },
      body: JSON.stringify(body),
      signal,
    });
    let last: { result?: T; error?: string; status?: number; partial?: unknown } = {};
    try {
      for await (const line of lines(response)) {
        last = JSON.parse(line);
        if ('progress' in last) onprogress?.(last.progress as number);
        if ('partial' in last) onpartial?.(last.partial);
      }
    } catch (error) {
      if (signal?.aborted) throw error;
      throw this.fail(this.silence(), 0); // it ended in the middle of an answer
    }
    if ('result' in last) return last.result as T;
    throw this.fail(last.error ?? this.silence(), last.status ?? 0);
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
      throw this.fail(this.silence(), 0);
    }
    if (response.ok) return response;
    if (response.status === 401) {
      const newer = localStorage.getItem(TOKEN) ?? ''; // of a later start, opened in another tab
      if (newer === this.token) throw this.fail(this.stale(), 401);
      this.token = newer;
      return this.send(address, options);
    }
    const said = await response.json().catch(() => ({}));
    throw this.fail(said.error ?? response.statusText, response.status);
  }

  private fail(sentence: string, status: number): ServerError {
    const error = new ServerError(sentence, status);
    if (PASSING.includes(status)) this.onfail(error);
    return error;
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
