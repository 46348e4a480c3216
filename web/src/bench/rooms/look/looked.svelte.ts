// The weights of one head or two on one scale, and which cell of one map belongs to which of the
// other.

import type { Engine, Shown } from '../../../engine/engine';
import type { Choice } from '../../../engine/messages';
import { differ } from '../../../trace/difference';
import type { Settings } from '../../../trace/picture';
import { labels } from '../../../trace/texts';
import type { SiteParts } from '../../../trace/wire';
import type { CellPlace } from '../../../view/heat';
import type { Run } from '../../runs';
import { align, carry } from './alignment';
import type { Side } from './PairReadout.svelte';

export type Wanted = { run: Run; site: SiteParts; head: number };
export type Seen = { shown: Shown; site: SiteParts; run: Run };
export type Pointed = { of: number; cell: CellPlace }; // 0: of A, 1: of B

export class Looked {
  seen = $state.raw<Seen[]>([]); // of A, and of B where it has been read
  fault = $state<string | null>(null);
  isBusy = $state(true);
  private newest = 0;

  readonly names = $derived(this.seen.map(({ run, site }) => labels(run.parts, site, 0)));
  readonly aligned = $derived.by(() => {
    const [a, b] = this.names;
    if (b === undefined) return null;
    return { queries: align(a.queries, b.queries), keys: align(a.keys, b.keys) };
  });

  /** Whether their tokens differ in number. */
  readonly isAcross = $derived.by(() => {
    const [a, b] = this.names;
    return b !== undefined && (a.queries.length !== b.queries.length || a.keys.length !== b.keys.length);
  });
  /** B − A, where both have the same cells. */
  readonly difference = $derived.by(() => {
    const [a, b] = this.seen;
    if (b === undefined || sizeOf(a) !== sizeOf(b) || !a.shown.weights || !b.shown.weights) return null;
    const { L, S } = a.shown.head;
    return differ(a.shown.weights, b.shown.weights, L, S);
  });

  /** Both heads, then the one with the smaller largest weight once more, on the scale of the other. */
  async look(wanted: Wanted[], how: Settings): Promise<void> {
    const mine = ++this.newest;
    this.isBusy = true;
    try {
      const asking = wanted.map((each): [Engine, Choice] => [each.run.engine, choiceOf(each)]);
      const alone = await Promise.all(asking.map(([engine, choice]) => engine.look(choice, how, { hasWeights: true })));
      const least = Math.max(...alone.map(({ top }) => top));
      const both = await Promise.all(
        alone.map((shown, n) =>
          shown.top === least ? shown : asking[n][0].look(asking[n][1], { ...how, least }, { hasWeights: true }),
        ),
      );
      if (mine !== this.newest) return;
      this.seen = both.map((shown, n) => ({ shown, site: wanted[n].site, run: wanted[n].run }));
      this.fault = null;
    } catch (error) {
      if (mine === this.newest) this.fault = (error as Error).message;
    }
    if (mine === this.newest) this.isBusy = false;
  }

  clear(): void {
    [this.seen, this.isBusy] = [[], false];
  }

  /** The cell of a map that somebody points at in either. */
  cellOf(pointed: Pointed | null, map: number): CellPlace | null {
    if (pointed === null || pointed.of === map) return pointed?.cell ?? null;
    if (this.aligned === null) return null;
    const { queries, keys } = this.aligned;
    return map === 1
      ? carry(pointed.cell, queries.there, keys.there)
      : carry(pointed.cell, queries.back, keys.back);
  }

  sidesOf(pointed: Pointed): Side[] {
    return this.seen.map(({ shown }, n) => ({
      name: 'AB'[n],
      head: shown.head,
      names: this.names[n],
      cell: this.cellOf(pointed, n),
    }));
  }
}

export const sizeOf = ({ shown }: Seen): string => `${shown.head.L} × ${shown.head.S}`;

const choiceOf = ({ run, site, head }: Wanted): Choice => ({
  run: run.answer.page.opening.run,
  sequence: 0,
  site: run.parts.sites.indexOf(site),
  head: Math.max(0, site.heads.indexOf(head)),
});
