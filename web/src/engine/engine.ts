// The engine as the page knows it: a thread of its own, or where there can be none, slices of the
// page's. Only the answer to the newest question arrives.

import { dense, type Dense } from '../trace/numbers';
import type { Settings } from '../trace/picture';
import type { Head } from '../trace/head';
import type { Statistics } from '../trace/summary';
import type { DifferenceParts } from '../trace/wire';
import { Desk } from './desk';
import type { Choice, Look, Message } from './messages';
import { headOf, type Runs } from './store';
import EngineWorker from './worker?worker&inline';

/** A head and everything about it that a view may show; all of it of one choice. */
export type Shown = {
  choice: Choice;
  settings: Settings;
  head: Head;
  step: number; // 1: of all queries; otherwise of queries 0, step, 2 · step …, and more will follow
  difference: DifferenceParts | null;
  statistics: Statistics; // of these queries
  image: ImageBitmap;
  top: number;
  isCapped: boolean;
  weights: Float32Array | null; // of all cells, where they were asked for
};

/** Where the operands lie until the engine wants them: in the page, or at a server. */
export interface Texts {
  tensors(): string | Promise<string>;
  site(run: number, site: number): string | Promise<string>;
}

const SLICE = 8; // milliseconds, so that frames are not missed
const MOST_IDLE = 2;
const idle: Worker[] = []; // threads whose page is gone; to start one takes longer than a look
let newest = 0; // question of all engines: a thread may still answer its last page

export class Engine {
  private readonly sent = new Map<string, Promise<void>>();
  private readonly send: Promise<(message: Message) => void>;
  private readonly tensors: Dense[] = [];
  private last: Shown | null = null;
  private id = 0;
  private thread: Worker | null = null;
  private receive: (look: Look) => void = () => {};

  constructor(
    private readonly page: Runs,
    private readonly texts: Promise<Texts>,
  ) {
    this.send = this.begin({ runs: page.runs });
  }

  /**
   * Resolves with the look asked for, or never, where something newer has been asked for. Of a large
   * head, `onpart` is given a look at some queries before.
   */
  async look(
    choice: Choice,
    settings: Settings,
    { hasWeights = false, onpart }: { hasWeights?: boolean; onpart?: (part: Shown) => void } = {},
  ): Promise<Shown> {
    const id = (this.id = ++newest);
    const [send, texts] = await Promise.all([this.send, this.texts]);
    const { run, site } = choice;
    await this.once('tensors', async () => send({ kind: 'tensors', text: await texts.tensors() }));
    await this.once(`${run} ${site}`, async () =>
      send({ kind: 'site', run, site, text: await texts.site(run, site) }),
    );
    if (id !== this.id) return new Promise(() => {});
    return new Promise((done) => {
      this.receive = (look) => {
        if (look.id !== id) return;
        const shown = this.shown(choice, settings, look);
        if (look.step === 1) done(shown);
        else onpart?.(shown);
      };
      const asked = { hasWeights, mayBePart: onpart !== undefined };
      send({ kind: 'look', id, choice, settings, asked });
    });
  }

  /** Nothing is asked any more: the thread is free for another page. */
  close(): void {
    this.receive = () => {};
    if (this.thread === null) return;
    if (idle.length < MOST_IDLE) idle.push(this.thread);
    else this.thread.terminate();
    this.thread = null;
  }

  /** What has been sent is not sent again; what could not be had is asked for anew. */
  private once(name: string, send: () => Promise<void>): Promise<void> {
    const found = this.sent.get(name);
    if (found !== undefined) return found;
    const sending = send();
    this.sent.set(name, sending);
    sending.catch(() => this.sent.delete(name));
    return sending;
  }

  private shown(choice: Choice, settings: Settings, look: Look): Shown {
    for (const [n, tensor] of look.tensors) this.tensors[n] = dense(tensor);
    const site = this.page.runs[choice.run].sites[choice.site];
    const isSame = this.last !== null && isEqual(this.last.choice, choice);
    const { operands, tensors: _tensors, id: _id, ...rest } = look;
    const head =
      isSame || operands === null ? this.last!.head : headOf(site, choice, this.tensors, operands);
    return (this.last = { ...rest, choice, settings, head });
  }

  private begin(runs: Runs): Promise<(message: Message) => void> {
    const here = (): ((message: Message) => void) => {
      const desk = new Desk(runs, SLICE, (look) => this.receive(look));
      return (message) => desk.take(message);
    };
    return new Promise((done) => {
      let worker: Worker;
      try {
        this.thread = worker = idle.pop() ?? new EngineWorker();
      } catch {
        return done(here()); // a page may be shown where no threads are allowed
      }
      worker.onerror = (event) => {
        event.preventDefault();
        worker.terminate();
        this.thread = null;
        done(here());
      };
      worker.onmessage = ({ data }: MessageEvent<Look | 'ready'>) => {
        if (data !== 'ready') this.receive(data);
        // Once it is closed, the thread may belong to another page.
        else done((message) => this.thread?.postMessage(message));
      };
      worker.postMessage({ kind: 'page', page: runs });
    });
  }
}

const isEqual = (a: Choice, b: Choice): boolean =>
  a.run === b.run && a.site === b.site && a.sequence === b.sequence && a.head === b.head;
