// A whole head at once: every weight, and what each query and each key amounts to.

import type { Head } from './head';
import { FOUR, Rows } from './rows';

export type Statistics = {
  visible: Float64Array; // keys that each query may attend to
  entropy: Float64Array;
  peak: Float64Array;
  distance: Float64Array;
  received: Float64Array;
};

/** A weight of a cell that the mask hides, in `Summary.weights`. */
export const HIDDEN = -1;

export type Summary = {
  L: number;
  S: number;
  step: number; // 1: all queries; otherwise queries 0, step, 2 · step … stand for all
  weights: Float32Array; // row after row, of these queries
  statistics: Statistics; // of these queries
};

/** Computes four rows at a time and pauses, so that whoever drives it may do something else. */
export function* summarise(head: Head, step = 1): Generator<void, Summary> {
  const { L, S, queryPositions } = head;
  const n = Math.ceil(L / step);
  const weights = new Float32Array(n * S).fill(HIDDEN);
  const [visible, entropy, peak, distance] = Array.from({ length: 4 }, () => new Float64Array(n));
  const received = new Float64Array(S);
  const rows = new Rows(head);
  for (let first = 0; first < n; first += FOUR) {
    const queries = Array.from({ length: Math.min(FOUR, n - first) }, (_, i) => (first + i) * step);
    rows.fill(queries);
    const { from, to } = rows;
    for (let i = 0; i < queries.length; i++) {
      const row = rows.weights[i];
      const at = (first + i) * S;
      const query = queries[i];
      const position = queryPositions[query];
      let count = 0;
      let most = 0;
      let away = 0;
      for (let key = from; key < to; key++) {
        const weight = row[key];
        if (!(weight > 0 || head.sees(query, key))) continue; // what has a weight is seen
        weights[at + key] = weight;
        count++;
        if (weight > most) most = weight;
        away += weight * Math.abs(key - position);
        received[key] += weight;
      }
      visible[first + i] = count;
      entropy[first + i] = rows.entropy[i];
      peak[first + i] = most;
      distance[first + i] = away;
    }
    yield;
  }
  return { L, S, step, weights, statistics: { visible, entropy, peak, distance, received } };
}

/**
 * How sharp a head is, on average over its queries: 0 even attention, 1 a single key. Queries that
 * see fewer than two keys have no choice and are left out; NaN if all are.
 */
export function sharpness({ visible, entropy: spread }: Statistics): number {
  let [sum, n] = [0, 0];
  visible.forEach((keys, query) => {
    if (keys < 2) return;
    sum += Math.min(1, Math.max(0, 1 - spread[query] / Math.log(keys)));
    n++;
  });
  return sum / n;
}
