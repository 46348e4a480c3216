// One head: from its operands to scores, weights and statistics, in float64, where one looks.

import type { Adds } from './biases';
import type { Allows } from './masks';
import type { Matrix } from './numbers';

export type Scoring = { allows: Allows; adds: Adds | null; scale: number; softcap: number | null };

/** One query against every key. */
export type Row = {
  dots: Float64Array;
  scores: Float64Array; // −∞ where hidden
  largest: number;
  exps: Float64Array;
  total: number;
  weights: Float64Array; // zeros where nothing is allowed
};

export type Statistics = {
  entropy: Float64Array;
  peak: Float64Array;
  distance: Float64Array;
  received: Float64Array;
};

export class Head {
  readonly L: number;
  readonly S: number;
  private known: { weights: Float32Array; statistics: Statistics; largest: number } | null = null;

  constructor(
    readonly q: Matrix,
    readonly k: Matrix,
    readonly v: Matrix,
    readonly scoring: Scoring,
    private readonly stands: number[], // the key at which each query stands
  ) {
    this.L = q.rows;
    this.S = k.rows;
  }

  score(dot: number, query: number, key: number): number {
    const { allows, adds, scale, softcap } = this.scoring;
    if (!allows(query, key)) return -Infinity;
    const scaled = dot * scale;
    const capped = softcap === null ? scaled : softcap * Math.tanh(scaled / softcap);
    return adds === null ? capped : capped + adds(query, key);
  }

  row(query: number): Row {
    const { q, k, S } = this;
    const width = q.width;
    const from = query * width;
    const dots = new Float64Array(S);
    const scores = new Float64Array(S);
    let largest = -Infinity;
    let broken = false;
    for (let key = 0; key < S; key++) {
      let dot = 0;
      const at = key * width;
      for (let i = 0; i < width; i++) dot += q.values[from + i] * k.values[at + i];
      dots[key] = dot;
      const score = this.score(dot, query, key);
      scores[key] = score;
      if (score > largest) largest = score;
      if (Number.isNaN(score)) broken = true;
    }
    return { dots, scores, largest, ...softmax(scores, largest, broken) };
  }

  /** Every weight of the head, row after row; kept. */
  get weights(): Float32Array {
    return this.all().weights;
  }

  get statistics(): Statistics {
    return this.all().statistics;
  }

  /** The largest weight of all. */
  get largest(): number {
    return this.all().largest;
  }

  weight(query: number, key: number): number {
    return this.weights[query * this.S + key];
  }

  private all() {
    if (this.known !== null) return this.known;
    const { L, S } = this;
    const weights = new Float32Array(L * S);
    const statistics: Statistics = {
      entropy: new Float64Array(L),
      peak: new Float64Array(L),
      distance: new Float64Array(L),
      received: new Float64Array(S),
    };
    let largest = 0;
    for (let query = 0; query < L; query++) {
      const row = this.row(query).weights;
      weights.set(row, query * S);
      statistics.entropy[query] = entropy(row);
      const stand = this.stands[query];
      for (let key = 0; key < S; key++) {
        statistics.distance[query] += row[key] * Math.abs(key - stand);
        statistics.received[key] += row[key];
        if (row[key] > statistics.peak[query]) statistics.peak[query] = row[key];
      }
      if (statistics.peak[query] > largest) largest = statistics.peak[query];
    }
    this.known = { weights, statistics, largest };
    return this.known;
  }
}

function softmax(scores: Float64Array, largest: number, broken: boolean) {
  const exps = new Float64Array(scores.length);
  let total = 0;
  for (let i = 0; i < scores.length; i++) {
    exps[i] = broken ? NaN : largest === -Infinity ? 0 : Math.exp(scores[i] - largest);
    total += exps[i];
  }
  const weights = total === 0 ? exps.slice() : exps.map((e) => e / total);
  return { exps, total, weights };
}

/** How spread weights are, in nats: 0 one key, log S all alike. */
export function entropy(weights: Float64Array): number {
  let sum = 0;
  for (const weight of weights) if (weight > 0) sum -= weight * Math.log(weight);
  return sum;
}

/** `n` of 0 … length − 1, evenly spaced, both ends among them. */
export function spaced(length: number, n: number): number[] {
  if (length <= n) return Array.from({ length }, (_, i) => i);
  return Array.from({ length: n }, (_, i) => Math.round((i * (length - 1)) / (n - 1)));
}

/** How sharply a head looks, on average over some queries: 0 at all keys alike, 1 at one. */
export function sharpness(head: Head, queries: number[]): number {
  const most = Math.log(Math.max(2, head.S));
  const mean =
    queries.reduce((sum, query) => sum + entropy(head.row(query).weights), 0) / queries.length;
  return Math.max(0, 1 - mean / most);
}

/** The keys that a query attends to most, strongest first. */
export function strongest(weights: ArrayLike<number>, n: number): number[] {
  return Array.from(weights, (_, key) => key)
    .filter((key) => weights[key] > 0)
    .sort((a, b) => weights[b] - weights[a] || a - b)
    .slice(0, n);
}
