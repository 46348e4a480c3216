// One cell as on paper: every operand, every step, and how far storage may have moved them.

import type { Head } from './head';
import type { Matrix } from './numbers';

export type Cell = {
  query: number;
  key: number;
  q: number[];
  k: number[];
  products: number[];
  dot: number;
  scale: number;
  scaled: number;
  softcap: number | null;
  capped: number;
  bias: number;
  allowed: boolean;
  score: number;
  largest: number;
  exp: number;
  total: number;
  weight: number;
  v: number[];
  contribution: number[];
  out: number[];
  /** Bounds on what rounding to 16 bits has done: to the dot product and to the weight. */
  dotError: number;
  weightError: number;
};

export function arithmetic(head: Head, query: number, key: number): Cell {
  const { q, k, v, scoring } = head;
  const row = head.row(query);
  const own = vector(q, query);
  const other = vector(k, key);
  const scaled = row.dots[key] * scoring.scale;
  const { softcap } = scoring;
  const weight = row.weights[key];
  const values = vector(v, key);
  const out = values.map((_, i) => {
    let sum = 0;
    for (let j = 0; j < head.S; j++) sum += row.weights[j] * v.values[j * v.width + i];
    return sum;
  });
  return {
    query,
    key,
    q: own,
    k: other,
    products: own.map((value, i) => value * other[i]),
    dot: row.dots[key],
    scale: scoring.scale,
    scaled,
    softcap,
    capped: softcap === null ? scaled : softcap * Math.tanh(scaled / softcap),
    bias: scoring.adds === null ? 0 : scoring.adds(query, key),
    allowed: scoring.allows(query, key),
    score: row.scores[key],
    largest: row.largest,
    exp: row.exps[key],
    total: row.total,
    weight,
    v: values,
    contribution: values.map((value) => weight * value),
    out,
    ...errors(head, query, key, weight),
  };
}

/**
 * A stored value is off by at most half a step. Hence |Δdot| ≤ ½·(step_q·Σ|k| + step_k·Σ|q|) plus
 * a quarter of their product for each place. The odds of a weight, w / (1 − w), change by at most
 * the factor exp(Δscore of its key + the largest Δscore of the row).
 */
function errors(head: Head, query: number, key: number, weight: number) {
  const { q, k, scoring } = head;
  const qStep = q.steps[query];
  const qSum = size(q, query);
  const dotError = (j: number) =>
    (qStep * size(k, j) + k.steps[j] * qSum) / 2 + (q.width * qStep * k.steps[j]) / 4;
  let most = 0;
  for (let j = 0; j < head.S; j++) {
    if (scoring.allows(query, j)) most = Math.max(most, dotError(j));
  }
  const factor = Math.exp(Math.abs(scoring.scale) * (dotError(key) + most));
  const rest = 1 - weight;
  const more = Number.isFinite(factor) ? (weight * factor) / (rest + weight * factor) : 1;
  const less = weight === 0 ? 0 : weight / (weight + rest * factor);
  return { dotError: dotError(key), weightError: Math.max(more - weight, weight - less) };
}

function vector(matrix: Matrix, row: number): number[] {
  return Array.from(matrix.values.subarray(row * matrix.width, (row + 1) * matrix.width));
}

function size(matrix: Matrix, row: number): number {
  let sum = 0;
  for (let i = row * matrix.width; i < (row + 1) * matrix.width; i++) {
    sum += Math.abs(matrix.values[i]);
  }
  return sum;
}
