// The engine as the page knows it: a thread of its own, or where there can be none, slices of the
// page's. Only the answer to the newest question arrives.

import { dense, type Dense } from '../trace/numbers';
import type { Settings } from '../trace/picture';
import type { Head } from '../trace/head';
import type { Statistics } from '../trace/summary';
import type { PageParts } from '../trace/wire';
import { Desk } from './desk';
import type { Choice, Look, Message } from './messages';
import { headOf, type Runs } from './store';
import EngineWorker from './worker?worker&inline';

/** A head and everything about it that a view may show; all of it of one choice. */
export type Shown = {
  choice: Choice;
  settings: Settings;
  head: Head;
  statistics: Statistics;
  image: ImageBitmap;
  top: number;
  isCapped: boolean;
};

/** Where the operands lie until the engine wants them. */
export interface Texts {
  tensors(): string;
  site(run: number, site: number): string;
}

const SLICE = 8; // milliseconds, so that frames are not missed

export class Engine {
  private readonly sent = new Set<string>();
  private readonly send: Promise<(message: Message) => void>;
  private readonly tensors: Dense[] = [];
  private last: Shown | null = null;
  private id = 0;
  private receive: (look: Look) => void = () => {};
  isThreaded = false;

  constructor(
    private readonly page: PageParts,
    private readonly texts: Promise<Texts>,
  ) {
    this.send = this.begin({ runs: page.runs });
  }

  /** Resolves with the look asked for, or never, where something newer has been asked for. */
  async look(choice: Choice, settings: Settings): Promise<Shown> {
    const id = ++this.id;
    const [send, texts] = await Promise.all([this.send, this.texts]);
    if (id !== this.id) return new Promise(() => {});
    if (this.sent.size === 0) send({ kind: 'tensors', text: texts.tensors() });
    const { run, site } = choice;
    const name = `${run} ${site}`;
    if (!this.sent.has(name)) send({ kind: 'site', run, site, text: texts.site(run, site) });
    this.sent.add(name);
    return new Promise((done) => {
      this.receive = (look) => {
        if (look.id === id) done(this.shown(choice, settings, look));
      };
      send({ kind: 'look', id, choice, settings });
    });
  }

  private shown(choice: Choice, settings: Settings, look: Look): Shown {
    for (const [n, tensor] of look.tensors) this.tensors[n] = dense(tensor);
    const site = this.page.runs[choice.run].sites[choice.site];
    const isSame = this.last !== null && isEqual(this.last.choice, choice);
    const head = isSame ? this.last!.head : headOf(site, choice, this.tensors, look.operands);
    const { statistics, image, top, isCapped } = look;
    this.last = { choice, settings, head, statistics, image, top, isCapped };
    return this.last;
  }

  private begin(runs: Runs): Promise<(message: Message) => void> {
    const here = (): ((message: Message) => void) => {
      const desk = new Desk(runs, SLICE, (look) => this.receive(look));
      return (message) => desk.take(message);
    };
    return new Promise((done) => {
      let worker: Worker;
      try {
        worker = new EngineWorker();
      } catch {
        return done(here()); // a page may be shown where no threads are allowed
      }
      worker.onerror = (event) => {
        event.preventDefault();
        worker.terminate();
        done(here());
      };
      worker.onmessage = ({ data }: MessageEvent<Look | 'ready'>) => {
        if (data !== 'ready') return this.receive(data);
        this.isThreaded = true;
        done((message) => worker.postMessage(message));
      };
      worker.postMessage({ kind: 'page', page: runs });
    });
  }
}

const isEqual = (a: Choice, b: Choice): boolean =>
  a.run === b.run && a.site === b.site && a.sequence === b.sequence && a.head === b.head;
