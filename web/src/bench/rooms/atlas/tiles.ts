// The tiles that are known or on their way: few at once, the middle first, none that is out of sight.

import { decodeTile, type Tile } from './tile';
import type { TileName } from './view';
import type { TileAnswer } from './wire';

const MOST_TILES = 240; // up to 256 kB each
const AT_ONCE = 3;

export type Fetch = (name: TileName, signal: AbortSignal) => Promise<TileAnswer>;

export const keyOf = ({ level, row, col }: TileName): string => `${level}/${row}/${col}`;

export class Tiles {
  private readonly known = new Map<string, Tile>(); // in the order of their last use
  private readonly asked = new Map<string, AbortController>();
  private wanted: TileName[] = [];
  private isClosed = false;

  constructor(
    private readonly fetch: Fetch,
    private readonly onchange: () => void,
    private readonly onfault: (error: unknown) => void,
  ) {}

  get(name: TileName): Tile | undefined {
    const key = keyOf(name);
    const tile = this.known.get(key);
    if (tile !== undefined) {
      this.known.delete(key);
      this.known.set(key, tile);
    }
    return tile;
  }

  /** How many are on their way or will be asked for. */
  get missing(): number {
    return this.wanted.filter((name) => !this.known.has(keyOf(name))).length;
  }

  /** What is in sight now; what is on its way and no longer wanted is given up. */
  want(names: TileName[]): void {
    this.wanted = names;
    const keys = new Set(names.map(keyOf));
    for (const [key, asking] of this.asked) if (!keys.has(key)) asking.abort();
    this.proceed();
  }

  add(name: TileName, tile: Tile): void {
    this.known.set(keyOf(name), tile);
    for (const key of this.known.keys()) {
      if (this.known.size <= MOST_TILES) break;
      this.known.delete(key);
    }
  }

  close(): void {
    this.isClosed = true;
    for (const asking of this.asked.values()) asking.abort();
  }

  private proceed(): void {
    for (const name of this.wanted) {
      if (this.isClosed || this.asked.size >= AT_ONCE) return;
      const key = keyOf(name);
      if (!this.known.has(key) && !this.asked.has(key)) void this.ask(name, key);
    }
  }

  private async ask(name: TileName, key: string): Promise<void> {
    const asking = new AbortController();
    this.asked.set(key, asking);
    try {
      const answer = await this.fetch(name, asking.signal);
      if (!this.isClosed) this.add(name, decodeTile(answer));
    } catch (error) {
      if (!asking.signal.aborted) {
        this.wanted = []; // the next movement tries again
        this.onfault(error);
      }
    }
    this.asked.delete(key);
    if (this.isClosed) return;
    this.onchange();
    this.proceed();
  }
}
