// Two heads of one size, cell by cell: the second's weight less the first's.

import { signedColour } from '../view/colour';
import { quantile, QUANTILE, type Pixels, type Settings } from './picture';
import { HIDDEN } from './summary';

/** The difference of a cell that both hide. */
export const NOWHERE = Infinity;

export type Difference = {
  L: number;
  S: number;
  values: Float32Array; // row after row
  rows: Float64Array; // of each query ½ Σ |difference|: 0 the same attention, 1 nothing in common
  mean: number; // of the rows, as gf.compare(…).by_head tells it
};

export function differ(first: Float32Array, second: Float32Array, L: number, S: number): Difference {
  const values = new Float32Array(L * S);
  const rows = new Float64Array(L);
  for (let i = 0; i < values.length; i++) {
    const [a, b] = [first[i], second[i]];
    if (a === HIDDEN && b === HIDDEN) {
      values[i] = NOWHERE;
      continue;
    }
    values[i] = (b === HIDDEN ? 0 : b) - (a === HIDDEN ? 0 : a);
    rows[Math.floor(i / S)] += Math.abs(values[i]) / 2;
  }
  return { L, S, values, rows, mean: rows.reduce((sum, row) => sum + row, 0) / L };
}

/** Where a difference lies on the scale, from −1 to 1. */
export function signedShare(value: number, top: number, isRooted: boolean): number {
  const linear = Math.max(-1, Math.min(1, value / (top || 1)));
  return isRooted ? Math.sign(linear) * Math.sqrt(Math.abs(linear)) : linear;
}

/** The largest difference of a row, either way. */
export function rowTop({ values, S }: Difference, query: number, from: number): number {
  let top = 0;
  for (let key = from; key < S; key++) {
    const size = Math.abs(values[query * S + key]);
    if (size !== NOWHERE && size > top) top = size;
  }
  return top;
}

/** One pixel for each block of cells: its largest difference, or its mean. */
export function differencePixels(found: Difference, settings: Settings): Pixels {
  const { L, S, values } = found;
  const { factor, scale, pool, leavesFirst, isRooted, isDark } = settings;
  const [width, height] = [Math.ceil(S / factor), Math.ceil(L / factor)];
  const first = leavesFirst ? 1 : 0;
  const pooled = new Float32Array(width * height).fill(NOWHERE);
  const counts = new Uint32Array(pooled.length);
  for (let query = 0; query < L; query++) {
    const over = scale === 'row' ? 1 / (rowTop(found, query, first) || 1) : 1;
    for (let key = first; key < S; key++) {
      const value = values[query * S + key] * over;
      if (value === NOWHERE) continue;
      const at = Math.floor(query / factor) * width + Math.floor(key / factor);
      if (counts[at]++ === 0) pooled[at] = value;
      else if (pool === 'mean') pooled[at] += value;
      else if (Math.abs(value) > Math.abs(pooled[at])) pooled[at] = value;
    }
  }
  if (pool === 'mean') for (let i = 0; i < pooled.length; i++) if (counts[i] > 1) pooled[i] /= counts[i];
  const sizes = (pool === 'mean' ? pooled : values).map((value) =>
    value === NOWHERE ? HIDDEN : Math.abs(value),
  );
  const top = scale === 'row' ? 1 : quantile([sizes], scale === 'largest' ? 1 : QUANTILE);
  const rgba = new Uint8ClampedArray(4 * pooled.length);
  const colours = new Uint32Array(511); // from −1 to 1
  new Uint8Array(colours.buffer).set(
    Array.from({ length: 511 }, (_, i) => [...signedColour(i / 255 - 1, isDark), 255]).flat(),
  );
  const pixels = new Uint32Array(rgba.buffer);
  for (let i = 0; i < pooled.length; i++) {
    if (pooled[i] === NOWHERE) continue; // nothing is painted where both hide it
    pixels[i] = colours[255 + (Math.round(255 * signedShare(pooled[i], top, isRooted)) || 0)];
  }
  const isCapped = scale !== 'row' && sizes.some((size) => size > 1.01 * top);
  return { rgba, width, height, top, isCapped };
}
