// Numbers of a run as curves over its steps.

import type { Measurement } from './wire';

export type Point = { step: number; value: number };
export type Curve = { name: string; points: Point[] };

/** What was logged under a name, step by step. */
export const pointsOf = (lines: readonly Measurement[], name: string): Point[] =>
  lines.flatMap(({ step, values }) => (name in values ? [{ step, value: values[name] }] : []));

/** The last of some things at or before a step; the first where all come later. */
export function lastUntil<T extends { step: number }>(things: readonly T[], step: number): T | null {
  let found: T | null = things[0] ?? null;
  for (const each of things) if (each.step <= step) found = each;
  return found;
}

/** From the lowest value to the highest; a constant curve has room above and below. */
export function range(curves: readonly Curve[]): [low: number, high: number] {
  const all = curves.flatMap(({ points }) => points.map(({ value }) => value));
  const low = all.reduce((a, b) => Math.min(a, b), Infinity);
  const high = all.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!Number.isFinite(low)) return [0, 1];
  return low === high ? [low - Math.abs(low || 1) / 2, high + Math.abs(high || 1) / 2] : [low, high];
}

/** Round numbers between two others, about so many. */
export function ticks(low: number, high: number, about = 4): number[] {
  const raw = (high - low) / about;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * ([1, 2, 5].find((each) => each * size >= raw) ?? 10);
  const found: number[] = [];
  for (let n = Math.ceil(low / step); n * step <= high + step * 1e-9; n++) found.push(n * step);
  return found;
}
