// One head as a map: it is opened, surveyed part by part, and its tiles are fetched where one looks.

import { isGivenUp } from '../../server';
import { decodeTile, HIDDEN, type Tile } from './tile';
import { Tiles } from './tiles';
import type { Extent, TileName } from './view';
import type { Ask, Opened, SurveyAnswer, TileAnswer } from './wire';

const MOST_CELLS = 2 ** 27; // of rows that a tile may survey by itself: a few seconds

export type Pool = 'max' | 'mean';
export type Shown = { pool: Pool; has_first: boolean };

export class HeadMap {
  opened = $state.raw<Opened | null>(null);
  share = $state(0); // of the survey
  surveyed = $state(0); // queries
  isSurveying = $state(false);
  fault = $state<string | null>(null);
  version = $state(0); // counts what there is to draw
  overview: Tile | null = null; // the top level; lines beyond `surveyed` are not known yet
  readonly tiles: Tiles;
  private tops: number[] = []; // of each level, once all is surveyed
  private asking: AbortController | null = null;

  constructor(
    private readonly ask: Ask,
    readonly shown: Shown,
  ) {
    this.tiles = new Tiles(
      (name, signal) => ask<TileAnswer>('tile', { ...name, ...shown }, { signal }),
      () => this.version++,
      (error) => this.complain(error),
    );
  }

  get extent(): Extent {
    return { queries: this.opened?.queries ?? 1, keys: this.opened?.keys ?? 1 };
  }

  get isComplete(): boolean {
    return this.opened !== null && this.surveyed === this.opened.queries;
  }

  /** The brightest colour of a level where all lines share a scale. */
  topOf = (level: number, tile: Tile): number => this.tops[level] ?? tile.top;

  /** What is known of a tile; the overview is one too. */
  tileAt(name: TileName): Tile | undefined {
    return name.level === this.opened?.top_level && this.isComplete
      ? (this.overview ?? undefined)
      : this.tiles.get(name);
  }

  /** Fetch these, except those that must wait for the survey of their rows. */
  want(names: TileName[]): void {
    const { opened } = this;
    if (opened === null) return;
    this.tiles.want(
      names.filter(({ level, row }) => {
        if (level === opened.top_level) return false; // the survey brings it
        const rows = opened.tile * 2 ** level;
        if (Math.min((row + 1) * rows, opened.queries) <= this.surveyed) return true;
        return level < opened.middle_level && rows * opened.keys <= MOST_CELLS;
      }),
    );
  }

  /** Open the head and survey it; what has been surveyed before takes one question. */
  async start(): Promise<void> {
    const asking = (this.asking = new AbortController());
    const { signal } = asking;
    this.isSurveying = true;
    this.fault = null;
    try {
      this.opened ??= await this.ask<Opened>('open', {}, { signal });
      while (!this.isComplete && !signal.aborted) {
        const asked = { start: this.surveyed, ...this.shown };
        const answer = await this.ask<SurveyAnswer>('survey', asked, { signal });
        if (!signal.aborted) this.take(answer, this.opened);
      }
    } catch (error) {
      if (!signal.aborted) this.complain(error);
    }
    if (this.asking === asking) this.isSurveying = false;
  }

  /** Stop the survey; `start` goes on. */
  stop(): void {
    this.asking?.abort();
    this.isSurveying = false;
  }

  close(): void {
    this.stop();
    this.tiles.close();
  }

  private take(answer: SurveyAnswer, { queries, keys, top_level }: Opened): void {
    const part = decodeTile(answer.tile);
    const rows = Math.ceil(queries / 2 ** top_level);
    const cols = Math.ceil(keys / 2 ** top_level);
    this.overview ??= {
      rows,
      cols,
      values: new Float32Array(rows * cols).fill(HIDDEN),
      rowTops: new Float32Array(rows),
      top: 0,
    };
    const line = answer.start / 2 ** top_level;
    this.overview.values.set(part.values, line * cols);
    this.overview.rowTops.set(part.rowTops, line);
    this.overview.top = part.top;
    this.overview.painted = undefined;
    this.tops = answer.tops;
    this.share = answer.share;
    this.surveyed = answer.stop;
    this.version++;
  }

  private complain(error: unknown): void {
    if (!isGivenUp(error)) this.fault = (error as Error).message;
  }
}
