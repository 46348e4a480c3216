// One head: from its operands to the scores and weights of a query, in float64, where one looks.

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

// Additive masks use −∞ or the lowest finite number: beside any score, such a key has no weight.
const HIDING = -1e30;
const MOST_KEPT = 256; // rows

export class Head {
  readonly L: number;
  readonly S: number;
  private readonly kept = new Map<number, Float64Array>();

  constructor(
    readonly q: Matrix,
    readonly k: Matrix,
    readonly v: Matrix,
    readonly scoring: Scoring,
    readonly queryPositions: number[], // the key position of each query
  ) {
    this.L = q.rows;
    this.S = k.rows;
  }

  /** Whether a query may attend to a key: neither the mask nor a bias of −∞ hides it. */
  sees(query: number, key: number): boolean {
    const { allows, adds } = this.scoring;
    return allows(query, key) && !(adds !== null && adds(query, key) < HIDING);
  }

  score(dot: number, query: number, key: number): number {
    const { allows, adds, scale, softcap } = this.scoring;
    if (!allows(query, key)) return -Infinity;
    const scaled = dot * scale;
    const capped = softcap === null ? scaled : softcap * Math.tanh(scaled / softcap);
    return adds === null ? capped : capped + adds(query, key);
  }

  /** Every step of one row, for its arithmetic. */
  row(query: number): Row {
    const { S } = this;
    const dots = new Float64Array(S);
    for (let key = 0; key < S; key++) dots[key] = this.dot(query, key);
    const scores = dots.map((dot, key) => this.score(dot, query, key));
    const exps = scores.slice();
    const { largest, total } = exponentials(exps);
    return { dots, scores, largest, exps, total, weights: divided(exps.slice(), total) };
  }

  /** The weights of one row; the last rows are kept. */
  weights(query: number): Float64Array {
    const known = this.kept.get(query);
    if (known !== undefined) return known;
    const made = this.fill(query);
    if (this.kept.size >= MOST_KEPT) this.kept.delete(this.kept.keys().next().value!);
    this.kept.set(query, made);
    return made;
  }

  weight(query: number, key: number): number {
    return this.weights(query)[key];
  }

  /** The weights of one row; what is hidden costs nothing. */
  private fill(query: number): Float64Array {
    const { allows } = this.scoring;
    const row = new Float64Array(this.S);
    for (let key = 0; key < this.S; key++) {
      row[key] = allows(query, key) ? this.score(this.dot(query, key), query, key) : -Infinity;
    }
    return divided(row, exponentials(row).total);
  }

  private dot(query: number, key: number): number {
    const { width, values: q } = this.q;
    const k = this.k.values;
    const from = query * width;
    const at = key * width;
    // Four sums side by side: each addition waits for the one before it, which is most of the time.
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    let i = 0;
    for (; i + 3 < width; i += 4) {
      a += q[from + i] * k[at + i];
      b += q[from + i + 1] * k[at + i + 1];
      c += q[from + i + 2] * k[at + i + 2];
      d += q[from + i + 3] * k[at + i + 3];
    }
    for (; i < width; i++) a += q[from + i] * k[at + i];
    return a + b + (c + d);
  }
}

/** Scores become exp(score − largest), in place; nothing allowed gives zeros, NaN stays NaN. */
function exponentials(scores: Float64Array): { largest: number; total: number } {
  let largest = -Infinity;
  let broken = false;
  for (const score of scores) {
    if (score > largest) largest = score;
    if (score !== score) broken = true;
  }
  let total = 0;
  for (let i = 0; i < scores.length; i++) {
    const score = scores[i];
    scores[i] = broken ? NaN : score === -Infinity ? 0 : Math.exp(score - largest);
    total += scores[i];
  }
  return { largest, total };
}

function divided(exps: Float64Array, total: number): Float64Array {
  if (total !== 0) for (let i = 0; i < exps.length; i++) exps[i] /= total;
  return exps;
}

/** The keys that a query attends to most, strongest first; one pass, as `n` is small. */
export function strongest(weights: ArrayLike<number>, n: number): number[] {
  const found: number[] = [];
  for (let key = 0; key < weights.length; key++) {
    const weight = weights[key];
    if (!(weight > 0) || (found.length === n && weight <= weights[found[n - 1]])) continue;
    let at = found.length;
    while (at > 0 && weights[found[at - 1]] < weight) at--;
    found.splice(at, 0, key);
    if (found.length > n) found.pop();
  }
  return found;
}
