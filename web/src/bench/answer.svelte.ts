// What a job has answered, how far the next answer is, and why there is none.

import type { Bench } from './bench.svelte';
import { isGivenUp } from './server';

export class Answer<T> {
  value = $state.raw<T | null>(null); // the last one; another may be on its way
  progress = $state<number | null>(null); // of the one on its way, 0 to 1
  fault = $state<string | null>(null);
  private asking: AbortController | null = null;

  constructor(private readonly bench: Bench) {}

  get isBusy(): boolean {
    return this.progress !== null;
  }

  /** Ask about the present reading; whatever was on its way is given up. */
  async ask(job: string, extra: object): Promise<void> {
    this.cancel();
    const asking = (this.asking = new AbortController());
    this.progress = 0;
    const onprogress = (share: number) => {
      if (this.asking === asking) this.progress = share;
    };
    try {
      this.value = await this.bench.ask<T>(job, extra, { signal: asking.signal, onprogress });
      this.fault = null;
    } catch (error) {
      if (isGivenUp(error)) return;
      this.value = null;
      this.fault = (error as Error).message;
    }
    if (this.asking === asking) this.progress = null;
  }

  /** Give up what is on its way. */
  cancel(): void {
    this.asking?.abort();
    this.asking = null;
    this.progress = null;
  }
}
