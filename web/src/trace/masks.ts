// Masks as formulas of (query, key): true where the query may attend.

import { cells, type Dense, type Place } from './numbers';
import type { MaskParts, Offset } from './wire';

export type Allows = (query: number, key: number) => boolean;

/** What is added to a query's index to get its key position. */
export function standing(offset: Offset, at: Place): number {
  if (offset === null) return at.S - at.L;
  return Array.isArray(offset) ? offset[at.sequence] : offset;
}

export function allows(mask: MaskParts | null, at: Place, tensors: Dense[]): Allows {
  if (mask === null) return () => true;
  switch (mask.kind) {
    case 'Causal': {
      const ahead = standing(mask.offset, at);
      return (q, k) => k <= q + ahead;
    }
    case 'Window': {
      const stand = standing(mask.offset, at);
      const left = mask.left ?? Infinity;
      const right = mask.right ?? Infinity;
      return (q, k) => k - q - stand >= -left && k - q - stand <= right;
    }
    case 'Prefix': {
      const length = Array.isArray(mask.length) ? mask.length[at.sequence] : mask.length;
      return (_, k) => k < length;
    }
    case 'Padding': {
      const length = mask.lengths[at.sequence];
      const inside = (place: number, end: number) =>
        mask.side === 'right' ? place < length : place >= end - length;
      return (q, k) =>
        (mask.of === 'queries' || inside(k, at.S)) && (mask.of === 'keys' || inside(q, at.L));
    }
    case 'Documents': {
      const keys = ofSequence(mask.ids, at.sequence);
      if (mask.query_ids === null) return (q, k) => keys[q + at.S - at.L] === keys[k];
      const queries = ofSequence(mask.query_ids, at.sequence);
      return (q, k) => queries[q] === keys[k];
    }
    case 'Explicit': {
      const cell = cells(tensors[mask.tensor], at);
      return (q, k) => cell(q, k) === 1;
    }
    case 'Not': {
      const inner = allows(mask.a, at, tensors);
      return (q, k) => !inner(q, k);
    }
    case 'And':
    case 'Or': {
      const a = allows(mask.a, at, tensors);
      const b = allows(mask.b, at, tensors);
      return mask.kind === 'And' ? (q, k) => a(q, k) && b(q, k) : (q, k) => a(q, k) || b(q, k);
    }
  }
}

/** The numbers of the tensors that a mask holds. */
export function maskTensors(mask: MaskParts | null): number[] {
  if (mask === null) return [];
  if (mask.kind === 'Explicit') return [mask.tensor];
  if (mask.kind === 'Not') return maskTensors(mask.a);
  return 'b' in mask ? [...maskTensors(mask.a), ...maskTensors(mask.b)] : [];
}

/** The mask as one writes it: Causal() & Padding(lengths=[3, 2]). */
export function written(mask: MaskParts | null): string {
  if (mask === null) return '';
  switch (mask.kind) {
    case 'Not':
      return `~${'b' in mask.a ? `(${written(mask.a)})` : written(mask.a)}`;
    case 'And':
    case 'Or': {
      const side = (m: MaskParts) =>
        'b' in m && m.kind !== mask.kind ? `(${written(m)})` : written(m);
      return `${side(mask.a)} ${mask.kind === 'And' ? '&' : '|'} ${side(mask.b)}`;
    }
    case 'Explicit':
      return 'Explicit(…)';
    default: {
      const { kind, ...fields } = mask;
      const usual: Record<string, unknown> = { of: 'keys', side: 'right' };
      const told = Object.entries(fields).filter(([n, v]) => v !== null && v !== usual[n]);
      return `${kind}(${told.map(([name, value]) => `${name}=${brief(value)}`).join(', ')})`;
    }
  }
}

function brief(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  return value.length <= 8 && !Array.isArray(value[0]) ? `[${value.join(', ')}]` : '[…]';
}

function ofSequence(ids: number[] | number[][], sequence: number): number[] {
  if (!Array.isArray(ids[0])) return ids as number[];
  const rows = ids as number[][];
  return rows[rows.length > 1 ? sequence : 0];
}
