// The engine's desk: texts come in, looks go out. The newest question is the only one that counts.

import type { Head } from '../trace/head';
import { picture } from '../trace/picture';
import { summarise, type Summary } from '../trace/summary';
import type { Choice, Look, Message } from './messages';
import { Store, type Runs } from './store';

type Question = Extract<Message, { kind: 'look' }>;
type Made = { head: Head; summary: Summary };

const MOST_CELLS = 1 << 25; // of the heads that are kept
// Products: a hundredth of a second for the first, some queries of a head that has more than a few.
const FIRST_PRODUCTS = 1 << 23;
const FEW_PRODUCTS = 1 << 25;

export class Desk {
  private readonly store: Store;
  private readonly kept = new Map<string, Made>();
  private newest: Question | null = null;
  private isBusy = false;

  /** `slice`: milliseconds of work before others have their turn. */
  constructor(
    page: Runs,
    private readonly slice: number,
    private readonly answer: (look: Look) => void,
  ) {
    this.store = new Store(page);
  }

  take(message: Message): void {
    if (message.kind === 'tensors') this.store.addTensors(message.text);
    else if (message.kind === 'site') this.store.addSite(message.run, message.site, message.text);
    else {
      this.newest = message;
      if (!this.isBusy) void this.work();
    }
  }

  private async work(): Promise<void> {
    this.isBusy = true;
    while (this.newest !== null) {
      const question: Question = this.newest;
      this.newest = null;
      try {
        await this.show(question);
      } catch (error) {
        this.isBusy = false; // the next question may have an answer
        throw error;
      }
    }
    this.isBusy = false;
  }

  /** A look at all of a head, unless somebody asks for another meanwhile; first at a part of it. */
  private async show(question: Question): Promise<void> {
    const { choice, asked } = question;
    const name = [choice.run, choice.site, choice.sequence, choice.head].join();
    let found = this.kept.get(name);
    const isNew = found === undefined;
    const step = isNew && asked.mayBePart ? this.firstStep(choice) : 1;
    if (found === undefined) {
      const head = this.store.head(choice);
      if (step > 1) {
        const part = await this.driven(summarise(head, step));
        if (part === null) return;
        this.answer(await this.look(question, { head, summary: part }, true));
      }
      const summary = await this.driven(summarise(head));
      if (summary === null) return;
      found = { head, summary };
    }
    this.kept.delete(name); // the one asked for last goes last
    this.kept.set(name, found);
    this.forget();
    this.answer(await this.look(question, found, step === 1));
  }

  /** Which queries of a large head are computed first: 0, n, 2 · n … */
  private firstStep(choice: Choice): number {
    const products = this.store.countProducts(choice);
    return products <= FEW_PRODUCTS ? 1 : 2 ** Math.ceil(Math.log2(products / FIRST_PRODUCTS));
  }

  private async driven<T>(steps: Generator<void, T>): Promise<T | null> {
    let end = performance.now() + this.slice;
    let step = steps.next();
    while (!step.done) {
      if (performance.now() > end) {
        await breath();
        if (this.newest !== null) return null;
        end = performance.now() + this.slice;
      }
      step = steps.next();
    }
    return step.value;
  }

  private forget(): void {
    let cells = 0;
    for (const { summary } of this.kept.values()) cells += summary.weights.length;
    for (const [name, { summary }] of this.kept) {
      if (cells <= MOST_CELLS || this.kept.size === 1) return;
      this.kept.delete(name);
      cells -= summary.weights.length;
    }
  }

  private async look(
    { id, choice, settings, asked }: Question,
    { head, summary }: Made,
    isFirst: boolean, // of the answers to this question
  ): Promise<Look> {
    const { rgba, width, height, top, isCapped } = picture(summary, settings);
    const image = await createImageBitmap(new ImageData(rgba, width, height));
    const { q, k, v } = head;
    const tensors = this.store.newTensors(choice);
    const { step, statistics } = summary;
    const difference = this.store.difference(choice);
    const weights = asked.hasWeights ? summary.weights : null;
    const operands = isFirst ? { q, k, v } : null;
    return { id, step, operands, difference, tensors, statistics, image, top, isCapped, weights };
  }
}

/** A turn for everything else that waits: messages, and in the page itself, frames. */
const breath = (): Promise<void> => new Promise((done) => setTimeout(done));
