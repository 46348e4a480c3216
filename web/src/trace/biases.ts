// Biases as formulas of (query, key): what is added to a score.

import { standing } from './masks';
import { cells, type Dense, type Place } from './numbers';
import type { BiasParts } from './wire';

export type Adds = (query: number, key: number) => number;

export function adds(bias: BiasParts | null, at: Place, tensors: Dense[]): Adds | null {
  if (bias === null) return null;
  switch (bias.kind) {
    case 'ALiBi': {
      const slope = tensors[bias.slopes].at(at.head);
      const stand = standing(bias.offset, at);
      return (q, k) => -slope * Math.abs(k - q - stand);
    }
    case 'RelativeBuckets': {
      // Python says which bucket a distance falls in: at the edges that is a matter of rounding.
      const table = tensors[bias.table];
      const stand = standing(bias.offset, at);
      return (q, k) => table.at(bias.buckets[k - q - stand - bias.first], at.head);
    }
    case 'ExplicitBias': {
      return cells(tensors[bias.tensor], at);
    }
    case 'BiasSum': {
      const a = adds(bias.a, at, tensors)!;
      const b = adds(bias.b, at, tensors)!;
      return (q, k) => a(q, k) + b(q, k);
    }
  }
}

/** The numbers of the tensors that a bias holds. */
export function biasTensors(bias: BiasParts | null): number[] {
  if (bias === null) return [];
  switch (bias.kind) {
    case 'ALiBi':
      return [bias.slopes];
    case 'RelativeBuckets':
      return [bias.table];
    case 'ExplicitBias':
      return [bias.tensor];
    case 'BiasSum':
      return [...biasTensors(bias.a), ...biasTensors(bias.b)];
  }
}
