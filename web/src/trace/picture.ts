// A head as a picture: one pixel for each cell, or for each block of cells where they are many.

import { colourOf } from '../view/colour';
import { HIDDEN, type Summary } from './summary';

/** What the strongest colour stands for: the largest weight, a high quantile, each row's own. */
export const SCALES = ['largest', 'quantile', 'row'] as const;
export type Scale = (typeof SCALES)[number];
export const POOLS = ['max', 'mean'] as const;
export type Pool = (typeof POOLS)[number];

export type Settings = {
  scale: Scale;
  isRooted: boolean; // colours follow the square root, which lets small weights be seen
  pool: Pool;
  leavesFirst: boolean; // the first key is left out
  factor: number; // cells along the side of a block
  isDark: boolean; // the scheme: weight 0 is paper
  least?: number; // the strongest colour stands for at least this weight: two maps, one scale
};

export type Pixels = {
  rgba: Uint8ClampedArray<ArrayBuffer>;
  width: number;
  height: number;
  top: number; // the weight of the strongest colour; of a share of its row's largest, 1
  isCapped: boolean; // some weights are noticeably larger still
};

export const QUANTILE = 0.995;

/** Where a weight lies on the scale, from 0 to 1. */
export function share(weight: number, top: number, isRooted: boolean): number {
  const linear = Math.min(1, weight / (top || 1));
  return isRooted ? Math.sqrt(linear) : linear;
}

export function picture(summary: Summary, settings: Settings): Pixels {
  const { factor, isRooted, isDark } = settings;
  const pooled = pool(summary, settings);
  const width = Math.ceil(summary.S / factor);
  const height = Math.ceil(summary.L / factor);
  const { top, isCapped } = topOf(summary, settings, pooled);
  const rgba = new Uint8ClampedArray(4 * width * height);
  const colours = new Uint32Array(256);
  new Uint8Array(colours.buffer).set(
    Array.from({ length: 256 }, (_, i) => [...colourOf(i / 255, isDark), 255]).flat(),
  );
  const pixels = new Uint32Array(rgba.buffer);
  for (let i = 0; i < pooled.length; i++) {
    if (pooled[i] === HIDDEN) continue; // nothing is painted where nothing may be attended to
    pixels[i] = colours[Math.round(255 * share(pooled[i], top, isRooted)) || 0];
  }
  return { rgba, width, height, top, isCapped };
}

/** Blocks of weights, or of shares of their row's largest: their largest, or their mean. */
function pool(summary: Summary, { scale, pool, leavesFirst, factor }: Settings): Float32Array {
  const { L, S, step, weights } = summary;
  const width = Math.ceil(S / factor);
  const height = Math.ceil(L / factor);
  const found = new Float32Array(width * height).fill(HIDDEN);
  const counts = pool === 'mean' ? new Uint32Array(found.length) : null;
  const isKnown = new Uint8Array(height); // lines of blocks
  const first = leavesFirst ? 1 : 0;
  for (let row = 0; row * S < weights.length; row++) {
    const from = row * S;
    const line = Math.floor((row * step) / factor);
    isKnown[line] = 1;
    const over = scale === 'row' ? 1 / (rowPeak(weights, from + first, from + S) || 1) : 1;
    let at = line * width + Math.floor(first / factor);
    let end = (Math.floor(first / factor) + 1) * factor; // of the block
    for (let key = first; key < S; key++) {
      if (key === end) {
        at++;
        end += factor;
      }
      const weight = weights[from + key];
      if (weight === HIDDEN) continue;
      const value = weight * over;
      if (counts !== null) {
        found[at] = (counts[at] === 0 ? 0 : found[at]) + value;
        counts[at]++;
      } else if (!(value <= found[at])) found[at] = value; // NaN is kept
    }
  }
  if (counts !== null) for (let i = 0; i < found.length; i++) if (counts[i] > 0) found[i] /= counts[i];
  // Where only some queries are known, each stands for those up to the next.
  for (let line = 1; line < height; line++) {
    if (!isKnown[line]) found.copyWithin(line * width, (line - 1) * width, line * width);
  }
  return found;
}

/**
 * The weight that gets the strongest colour. A query that sees one key gives it all, as the first
 * of a causal text does: that says nothing, and does not count.
 */
function topOf(
  summary: Summary,
  { scale, pool, leavesFirst, least = 0 }: Settings,
  pooled: Float32Array,
) {
  if (scale === 'row') return { top: 1, isCapped: false };
  const { S, weights, statistics } = summary;
  const share = scale === 'largest' ? 1 : QUANTILE;
  const largest = pool === 'mean' ? pooled : weights;
  let top: number;
  if (pool === 'mean') top = quantile([pooled], share);
  else {
    // Of the weights themselves, not of blocks: zooming must not change what a colour means.
    const first = leavesFirst ? 1 : 0;
    const rows = Array.from(statistics.visible, (_, row) =>
      weights.subarray(row * S + first, (row + 1) * S),
    );
    const free = rows.filter((_, row) => statistics.visible[row] > 1);
    top = quantile(free.length > 0 ? free : rows, share);
  }
  top = Math.max(top, least);
  return { top, isCapped: largest.some((weight) => weight > 1.01 * top) };
}

function rowPeak(weights: Float32Array, from: number, to: number): number {
  let peak = 0;
  for (let i = from; i < to; i++) if (weights[i] > peak) peak = weights[i];
  return peak;
}

/**
 * The value that a share of all visible ones does not exceed, at most 0.8 % too large; the largest
 * of all where it would be 0. Positive float32 are ordered as their bits are, so that counting
 * replaces sorting: the upper 16 bits are the sign, the exponent and 7 bits of the fraction.
 */
export function quantile(parts: Float32Array[], q: number): number {
  const counts = new Uint32Array(1 << 16);
  let [n, largest] = [0, 0];
  for (const values of parts) {
    const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (!(value >= 0)) continue;
      if (value > largest) largest = value;
      counts[bits[i] >>> 16]++;
      n++;
    }
  }
  let [below, high] = [0, 0];
  while (high < counts.length && below + counts[high] < q * n) below += counts[high++];
  const end = new Float32Array(new Uint32Array([(high << 16) | 0xffff]).buffer)[0];
  return high === 0 || !(end < largest) ? largest : end;
}
