// A whole head at once: every weight, and what each query and each key amounts to.

import { entropy, type Head } from './head';

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
  weights: Float32Array; // row after row
  statistics: Statistics;
};

/** Computes row by row and pauses after each, so that whoever drives it may do something else. */
export function* summarise(head: Head): Generator<void, Summary> {
  const { L, S, queryPositions } = head;
  const weights = new Float32Array(L * S);
  const statistics: Statistics = {
    visible: new Float64Array(L),
    entropy: new Float64Array(L),
    peak: new Float64Array(L),
    distance: new Float64Array(L),
    received: new Float64Array(S),
  };
  const row = new Float64Array(S);
  for (let query = 0; query < L; query++) {
    head.fill(query, row);
    let [visible, peak, distance] = [0, 0, 0];
    for (let key = 0; key < S; key++) {
      const weight = row[key];
      const sees = weight > 0 || head.sees(query, key); // what has a weight is seen
      weights[query * S + key] = sees ? weight : HIDDEN;
      if (sees) visible++;
      if (weight > peak) peak = weight;
      distance += weight * Math.abs(key - queryPositions[query]);
      statistics.received[key] += weight;
    }
    statistics.visible[query] = visible;
    statistics.entropy[query] = entropy(row);
    statistics.peak[query] = peak;
    statistics.distance[query] = distance;
    yield;
  }
  return { L, S, weights, statistics };
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
