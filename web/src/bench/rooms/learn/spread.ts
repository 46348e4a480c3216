// The range of several runs, beside their mean.

import type { SeriesParts } from '../../../chart/wire';
import { significant } from '../../../view/format';

/** The least and the most at a place; null where there is one run, or nothing yet. */
export function range({ low, high }: SeriesParts, i: number): [number, number] | null {
  const [from, to] = [low?.[i] ?? null, high?.[i] ?? null];
  return from === null || to === null ? null : [from, to];
}

/** A number in words, with its range in brackets where the runs differ: 0.85 (0.8–0.91). */
export function written(series: SeriesParts, i: number, digits: number): string {
  const value = series.values[i];
  if (value === null) return '–';
  const ends = range(series, i)?.map((end) => significant(end, digits));
  const mean = significant(value, digits);
  return ends === undefined || ends[0] === ends[1] ? mean : `${mean} (${ends[0]}–${ends[1]})`;
}
