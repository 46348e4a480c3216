// A head of a long text as the server sketches it: some queries, each exact, their keys in blocks.

import { decodeNumbers, decodeTile, type Tile } from '../atlas/tile';
import type { Schemas } from '../../schemas';

export type Sketch = {
  site: string;
  head: number;
  queries: number[]; // the places of the lines
  block: number; // keys that share a column
  tile: Tile;
  strongest: Int32Array; // which key of a block has its weight
};

export function decodeSketch(answer: Schemas['SketchAnswer'], site: string, head: number): Sketch {
  const offsets = decodeNumbers(answer.strongest, 'float32');
  return {
    site,
    head,
    queries: answer.queries,
    block: answer.block,
    tile: decodeTile(answer),
    strongest: new Int32Array(offsets.buffer),
  };
}

/** The cell of a line and a column: the key of the block with the largest weight. */
export function cellAt(sketch: Sketch, line: number, column: number) {
  const i = line * sketch.tile.cols + column;
  return {
    query: sketch.queries[line],
    key: column * sketch.block + sketch.strongest[i],
    weight: sketch.tile.values[i],
  };
}

/** The line of the query that is nearest to a place. */
export function lineOf({ queries }: Sketch, query: number): number {
  let best = 0;
  queries.forEach((place, i) => {
    if (Math.abs(place - query) < Math.abs(queries[best] - query)) best = i;
  });
  return best;
}

/** Of each line, its strongest cell. */
export function strongestOf(sketch: Sketch) {
  const { rows, cols, values } = sketch.tile;
  return Array.from({ length: rows }, (_, line) => {
    let best = 0;
    for (let column = 1; column < cols; column++) {
      if (values[line * cols + column] > values[line * cols + best]) best = column;
    }
    return cellAt(sketch, line, best);
  });
}

/** Sketches that are known or on their way: neighbours of the one that is shown are asked for too. */
export class Sketches {
  private readonly known = new Map<string, Sketch>();
  private readonly asked = new Map<string, { answer: Promise<Sketch>; asking: AbortController }>();

  constructor(
    private readonly ask: (site: string, head: number, signal: AbortSignal) => Promise<Sketch>,
    private readonly most = 24, // that are kept
  ) {}

  recall(site: string, head: number): Sketch | null {
    return this.known.get(`${site} ${head}`) ?? null;
  }

  isAwaited(site: string, head: number): boolean {
    return this.asked.has(`${site} ${head}`);
  }

  /** What has been asked for already is not asked for again. */
  fetch(site: string, head: number): Promise<Sketch> {
    const name = `${site} ${head}`;
    const found = this.known.get(name);
    if (found !== undefined) return Promise.resolve(found);
    const waiting = this.asked.get(name);
    if (waiting !== undefined) return waiting.answer;
    const asking = new AbortController();
    const answer = this.ask(site, head, asking.signal)
      .then((sketch) => {
        if (this.known.size >= this.most) this.known.delete(this.known.keys().next().value!);
        this.known.set(name, sketch);
        return sketch;
      })
      .finally(() => this.asked.delete(name));
    this.asked.set(name, { answer, asking });
    return answer;
  }

  /** Nobody waits for any others than these heads of a site. */
  keepOnly(site: string, heads: number[]): void {
    for (const [name, { asking }] of this.asked) {
      if (!heads.some((head) => name === `${site} ${head}`)) asking.abort();
    }
  }
}
