// From base64 to numbers. All of it is little-endian, as every machine with a browser is.

import type { Bits, Packed, Rows } from './wire';

/** Row vectors, and by how much one step of a row's storage moves a value. */
export type Matrix = { values: Float32Array; rows: number; width: number; steps: Float32Array };

type WithBase64 = { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };

export function bytes(base64: string): Uint8Array<ArrayBuffer> {
  const { fromBase64 } = Uint8Array as unknown as WithBase64;
  if (fromBase64 !== undefined) return fromBase64.call(Uint8Array, base64);
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
  return found;
}

export const float32 = (base64: string): Float32Array => new Float32Array(bytes(base64).buffer);

/** The values of some rows: each whole number times the step of its row. */
export function unpackRows(
  whole: Int16Array,
  steps: Float32Array,
  width: number,
  first: number,
  rows: number,
): Matrix {
  const values = new Float32Array(rows * width);
  for (let r = 0; r < rows; r++) {
    const step = steps[first + r];
    const from = (first + r) * width;
    for (let i = 0; i < width; i++) values[r * width + i] = whole[from + i] * step;
  }
  return { values, rows, width, steps: steps.slice(first, first + rows) };
}

/** An operand (B, heads, length, width), decoded from text once and cut head by head. */
export class Operand {
  private readonly whole: Int16Array;
  private readonly steps: Float32Array;

  constructor(
    rows: Rows,
    private readonly heads: number,
    private readonly length: number,
    private readonly width: number,
  ) {
    this.whole = new Int16Array(bytes(rows.int16).buffer);
    this.steps = float32(rows.steps);
  }

  head(sequence: number, head: number): Matrix {
    const first = (sequence * this.heads + head) * this.length;
    return unpackRows(this.whole, this.steps, this.width, first, this.length);
  }
}

/** Where one looks: a sequence and a head of a matrix of L queries by S keys. */
export type Place = { sequence: number; head: number; L: number; S: number };

/** A tensor of a mask or bias, decoded: bits, or numbers. */
export type Tensor = { shape: number[]; bits?: Uint8Array; values?: Float32Array };

export function unpackTensor(packed: Packed | Bits): Tensor {
  return 'bits' in packed
    ? { shape: packed.shape, bits: bytes(packed.bits) }
    : { shape: packed.shape, values: float32(packed.float32) };
}

/** A tensor with at most four dimensions, any of which may be 1 and is then shared. */
export type Dense = { shape: number[]; at: (...place: number[]) => number };

export function dense({ shape, bits, values }: Tensor): Dense {
  const strides = shape.map((n, i) =>
    n === 1 ? 0 : shape.slice(i + 1).reduce((product, m) => product * m, 1),
  );
  const index = (place: number[]) => place.reduce((sum, p, i) => sum + p * strides[i], 0);
  if (bits !== undefined) {
    const bit = (i: number) => (bits[i >> 3] >> (7 - (i & 7))) & 1;
    return { shape, at: (...place) => bit(index(place)) };
  }
  return { shape, at: (...place) => values![index(place)] };
}

/** The cells of one sequence and head, from (L, S) or (B, H, L, S). */
export function cells(tensor: Dense, at: Place): (query: number, key: number) => number {
  if (tensor.shape.length === 2) return (q, k) => tensor.at(q, k);
  return (q, k) => tensor.at(at.sequence, at.head, q, k);
}
