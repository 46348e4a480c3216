// A training run that is followed: what is new is asked for, what was rewritten is forgotten.

import { isGivenUp, type Server } from '../../server';
import type {
  FilmAnswer,
  Frame,
  HeadName,
  LinesRead,
  Measurement,
  Sample,
  TrainingAnswer,
} from './wire';

const PAUSE = 2000; // milliseconds between questions about a run that is not finished

export class TrainingRun {
  about = $state.raw<TrainingAnswer | null>(null);
  lines = $state.raw<Measurement[]>([]);
  samples = $state.raw<Sample[]>([]);
  film = $state.raw<FilmAnswer | null>(null);
  frames = $state.raw<Frame[]>([]);
  progress = $state<number | null>(null); // of the film
  fault = $state<string | null>(null);

  private leaving = new AbortController();
  private filming: AbortController | null = null;
  private timer = 0;
  private filmed: string | null = null; // the heads that were asked for

  constructor(
    private readonly server: Server,
    readonly name: string,
  ) {}

  /** Follow the run until `leave`. */
  async follow(): Promise<void> {
    try {
      if (!document.hidden || this.about === null) await this.update();
    } catch (error) {
      if (isGivenUp(error)) return;
      this.fault = (error as Error).message;
    }
    const isOver = this.about === null || this.about.state === 'finished';
    if (!isOver && !this.leaving.signal.aborted)
      this.timer = window.setTimeout(() => void this.follow(), PAUSE);
  }

  leave(): void {
    this.leaving.abort();
    this.cancel();
    clearTimeout(this.timer);
  }

  private async update(): Promise<void> {
    for (let isMore = true; isMore; ) {
      const found: TrainingAnswer = await this.server.ask<TrainingAnswer>(
        'training',
        {
          model: this.name,
          metrics: this.about?.metrics.mark ?? null,
          samples: this.about?.samples.mark ?? null,
        },
        { signal: this.leaving.signal },
      );
      this.lines = joined(this.lines, found.metrics);
      this.samples = joined(this.samples, found.samples);
      this.about = found;
      isMore = found.metrics.is_more || found.samples.is_more;
    }
    this.fault = null;
    const newest = this.about?.snapshots.at(-1) ?? -1;
    const isFilmed = this.film?.unreadable.includes(newest) || newest <= this.lastFrame;
    if (this.film !== null && this.filming === null && !isFilmed)
      await this.shoot(this.film.chosen, this.lastFrame);
  }

  private get lastFrame(): number {
    return this.frames.at(-1)?.step ?? -1;
  }

  /** The film of some heads, from its beginning; no heads are the sharpest ones. */
  async show(heads: HeadName[]): Promise<void> {
    if (this.filmed === JSON.stringify(heads)) return;
    this.filmed = JSON.stringify(heads);
    await this.shoot(heads, -1);
  }

  private async shoot(heads: HeadName[], after: number): Promise<void> {
    this.filming?.abort();
    const mine = (this.filming = new AbortController());
    this.progress = 0;
    try {
      const found = await this.server.ask<FilmAnswer>(
        'film',
        { model: this.name, heads, after },
        { signal: mine.signal, onprogress: (share) => (this.progress = share) },
      );
      this.frames = after === -1 ? found.frames : [...this.frames, ...found.frames];
      this.film = found;
    } catch (error) {
      if (isGivenUp(error)) return;
      this.fault = (error as Error).message;
    }
    if (this.filming === mine) this.cancel();
  }

  /** Give up the film that is on its way. */
  cancel(): void {
    this.filming?.abort();
    this.filming = null;
    this.progress = null;
  }
}

const joined = <T>(known: T[], read: LinesRead<T>): T[] =>
  read.is_anew ? read.lines : read.lines.length === 0 ? known : [...known, ...read.lines];
