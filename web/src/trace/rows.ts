// Rows of weights, four queries at a time, for whole heads: each number that is read is used four
// times, which takes a fifth of the time of one row after another.

import type { Head } from './head';

export const FOUR = 4;

export class Rows {
  readonly weights: Float64Array[];
  readonly entropy = new Float64Array(FOUR); // of each row, in nats: 0 one key, log n over n keys alike
  from = 0; // keys before it and from `to` on are hidden from all four; their weights are not written
  to = 0;

  constructor(private readonly head: Head) {
    this.weights = Array.from({ length: FOUR }, () => new Float64Array(head.S));
  }

  /** The weights of up to four queries. */
  fill(queries: number[]): void {
    this.reach(queries);
    this.multiply(queries);
    queries.forEach((query, i) => this.normalise(query, i));
  }

  /** Which keys any of the queries may attend to. */
  private reach(queries: number[]): void {
    const { allows } = this.head.scoring;
    const isHidden = (key: number): boolean => {
      for (let i = 0; i < queries.length; i++) if (allows(queries[i], key)) return false;
      return true;
    };
    [this.from, this.to] = [0, this.head.S];
    while (this.to > 0 && isHidden(this.to - 1)) this.to--;
    while (this.from < this.to && isHidden(this.from)) this.from++;
  }

  /** q · k of each query with each key in reach, four by four. */
  private multiply(queries: number[]): void {
    const { q, k } = this.head;
    const { width, values: a } = q;
    const b = k.values;
    // Too few queries: the last one again, into the same row.
    const [r0, r1, r2, r3] = [0, 1, 2, 3].map((i) => Math.min(i, queries.length - 1));
    const [q0, q1, q2, q3] = [r0, r1, r2, r3].map((row) => queries[row] * width);
    const [w0, w1, w2, w3] = [r0, r1, r2, r3].map((row) => this.weights[row]);
    const last = this.to - 1;
    for (let key = this.from; key <= last; key += FOUR) {
      const key1 = Math.min(key + 1, last);
      const key2 = Math.min(key + 2, last);
      const key3 = Math.min(key + 3, last);
      const k0 = key * width;
      const k1 = key1 * width;
      const k2 = key2 * width;
      const k3 = key3 * width;
      let s00 = 0;
      let s01 = 0;
      let s02 = 0;
      let s03 = 0;
      let s10 = 0;
      let s11 = 0;
      let s12 = 0;
      let s13 = 0;
      let s20 = 0;
      let s21 = 0;
      let s22 = 0;
      let s23 = 0;
      let s30 = 0;
      let s31 = 0;
      let s32 = 0;
      let s33 = 0;
      for (let i = 0; i < width; i++) {
        const b0 = b[k0 + i];
        const b1 = b[k1 + i];
        const b2 = b[k2 + i];
        const b3 = b[k3 + i];
        const a0 = a[q0 + i];
        const a1 = a[q1 + i];
        const a2 = a[q2 + i];
        const a3 = a[q3 + i];
        s00 += a0 * b0;
        s01 += a0 * b1;
        s02 += a0 * b2;
        s03 += a0 * b3;
        s10 += a1 * b0;
        s11 += a1 * b1;
        s12 += a1 * b2;
        s13 += a1 * b3;
        s20 += a2 * b0;
        s21 += a2 * b1;
        s22 += a2 * b2;
        s23 += a2 * b3;
        s30 += a3 * b0;
        s31 += a3 * b1;
        s32 += a3 * b2;
        s33 += a3 * b3;
      }
      w0[key] = s00;
      w0[key1] = s01;
      w0[key2] = s02;
      w0[key3] = s03;
      w1[key] = s10;
      w1[key1] = s11;
      w1[key2] = s12;
      w1[key3] = s13;
      w2[key] = s20;
      w2[key1] = s21;
      w2[key2] = s22;
      w2[key3] = s23;
      w3[key] = s30;
      w3[key1] = s31;
      w3[key2] = s32;
      w3[key3] = s33;
    }
  }

  /** From dot products to weights, in place: zeros where nothing is allowed, NaN stays NaN. */
  private normalise(query: number, i: number): void {
    const { from, to, head } = this;
    const row = this.weights[i];
    let largest = -Infinity;
    let isBroken = false;
    for (let key = from; key < to; key++) {
      const score = head.score(row[key], query, key);
      row[key] = score;
      if (score > largest) largest = score;
      if (score !== score) isBroken = true;
    }
    let total = 0;
    let sum = 0;
    for (let key = from; key < to; key++) {
      const score = row[key];
      const below = score - largest;
      const exp = isBroken ? NaN : score === -Infinity ? 0 : Math.exp(below);
      row[key] = exp;
      total += exp;
      if (exp > 0) sum += exp * below;
    }
    if (total !== 0) for (let key = from; key < to; key++) row[key] /= total;
    // −Σ w log w, with log w = score − largest − log total: one logarithm for all.
    this.entropy[i] = total > 0 ? Math.log(total) - sum / total : 0;
  }
}
