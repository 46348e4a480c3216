// The tokens along one side, fetched in blocks where they are shown: a text may have a million.

import { shown } from '../../../trace/texts';
import type { LabelsAnswer } from './wire';

const BLOCK = 512;

export class Labels {
  private readonly known = new Map<number, string[]>();
  private readonly asked = new Set<number>();

  constructor(
    private readonly fetch: (start: number, stop: number) => Promise<LabelsAnswer>,
    private readonly onchange: () => void,
  ) {}

  /** The token at a place; a blank until it is known. */
  at(place: number): string {
    return this.known.get(Math.floor(place / BLOCK))?.[place % BLOCK] ?? '';
  }

  /** These tokens will be shown. */
  want(from: number, to: number): void {
    for (let block = Math.floor(from / BLOCK); block * BLOCK < to; block++) {
      if (!this.known.has(block) && !this.asked.has(block)) void this.ask(block);
    }
  }

  private async ask(block: number): Promise<void> {
    this.asked.add(block);
    try {
      const { labels } = await this.fetch(block * BLOCK, (block + 1) * BLOCK);
      this.known.set(block, labels.map(shown));
      this.onchange();
    } catch {
      // the picture is as good without them
    } finally {
      this.asked.delete(block);
    }
  }
}
