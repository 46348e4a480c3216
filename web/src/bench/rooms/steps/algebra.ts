// The arithmetic of a block in float64: norms, products with a matrix, rotations, activations.

import { bytes } from '../../../trace/numbers';
import type { MatrixNumbers, NormNumbers, Packed } from './wire';

export type Numbers = Float64Array;
export type Norm = { isCentred: boolean; eps: number; gain: Numbers | null; bias: Numbers | null };
export type Matrix = { rows: number; columns: number; whole: number; values: Numbers; bias: Numbers | null };
export type Rotation = { cos: Numbers; sin: Numbers; layout: 'half' | 'interleaved' };

export function unpack(packed: Packed): Numbers {
  const { float32, float64 } = packed;
  if (float32 != null) return Float64Array.from(new Float32Array(bytes(float32).buffer));
  return new Float64Array(bytes(float64!).buffer);
}

export const maybe = (packed: Packed | null | undefined): Numbers | null =>
  packed == null ? null : unpack(packed);

export const unpackNorm = (norm: NormNumbers | null | undefined): Norm | null =>
  norm == null
    ? null
    : { isCentred: norm.is_centred, eps: norm.eps, gain: maybe(norm.gain), bias: maybe(norm.bias) };

export function unpackMatrix(matrix: MatrixNumbers | null | undefined): Matrix | null {
  if (matrix == null) return null;
  const [rows, columns] = matrix.weight.shape;
  const { weight, bias, columns: whole } = matrix;
  return { rows, columns, whole, values: unpack(weight), bias: maybe(bias) };
}

export const isWhole = (matrix: Matrix | null): matrix is Matrix =>
  matrix !== null && matrix.columns === matrix.whole;

export const dot = (a: Numbers, b: Numbers): number => a.reduce((sum, each, i) => sum + each * b[i], 0);

export const rowOf = (values: Numbers, width: number, row: number): Numbers =>
  values.subarray(row * width, (row + 1) * width);

export const columnOf = (values: Numbers, width: number, column: number): Numbers =>
  Float64Array.from({ length: values.length / width }, (_, j) => values[j * width + column]);

/** matrix · x + bias */
export function project(matrix: Matrix, x: Numbers): Numbers {
  const { rows, columns, values, bias } = matrix;
  return Float64Array.from(
    { length: rows },
    (_, i) => dot(rowOf(values, columns, i), x) + (bias === null ? 0 : bias[i]),
  );
}

/** The mean that a norm subtracts, and the size that it divides by. */
export function statistics(norm: Norm, x: Numbers): { mean: number; size: number } {
  const n = x.length;
  const mean = norm.isCentred ? x.reduce((a, b) => a + b, 0) / n : 0;
  const square = x.reduce((sum, each) => sum + (each - mean) ** 2, 0) / n;
  return { mean, size: Math.sqrt(square + norm.eps) };
}

export function normalise(norm: Norm, x: Numbers): Numbers {
  const { mean, size } = statistics(norm, x);
  return x.map((each, i) => ((each - mean) / size) * (norm.gain?.[i] ?? 1) + (norm.bias?.[i] ?? 0));
}

/** Where the partner of a coordinate is, its angle, and the sign of its sine; null: not rotated. */
export function pairOf(rotation: Rotation, i: number) {
  const P = rotation.cos.length;
  if (i >= 2 * P) return null;
  const isHalf = rotation.layout === 'half';
  const isFirst = isHalf ? i < P : i % 2 === 0;
  const pair = isHalf ? i % P : i >> 1;
  const by = isHalf ? P : 1;
  return { other: isFirst ? i + by : i - by, pair, sign: isFirst ? -1 : 1 };
}

export function rotate(rotation: Rotation, x: Numbers): Numbers {
  return x.map((each, i) => {
    const found = pairOf(rotation, i);
    if (found === null) return each;
    return each * rotation.cos[found.pair] + found.sign * x[found.other] * rotation.sin[found.pair];
  });
}

export const plus = (a: Numbers, b: Numbers): Numbers => a.map((each, i) => each + b[i]);

export const ACTIVATIONS: Record<string, (x: number) => number> = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
};

/** The error function: its series near 0, the continued fraction of its complement elsewhere. */
export function erf(x: number): number {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let term = x;
    let sum = x;
    for (let n = 1; Math.abs(term) > 1e-18 * Math.abs(sum); n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  const rest = Math.exp(-size * size) / (Math.sqrt(Math.PI) * (size + fraction));
  return Math.sign(x) * (1 - rest);
}
