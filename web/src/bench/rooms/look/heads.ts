// All heads of a run: their maps, roles and effects as the server measures them, and their order.

import { bytes } from '../../../trace/numbers';
import type { Schemas } from '../../schemas';

export type HeadMap = Schemas['HeadMap'];
export type SiteMaps = Schemas['SiteMaps'];
export type HeadRole = Schemas['HeadRole'];
export type HeadEffect = Schemas['HeadEffect'];

export const ORDERS = ['layer', 'role', 'sharpness', 'effect'] as const;
export type Order = (typeof ORDERS)[number];

/** A head with all that is known of it. */
export type Entry = {
  site: number;
  head: number; // its number in the model
  rows: number;
  cols: number;
  top: number;
  cells: Uint8Array;
  role: string | null;
  score: number | null;
  sharpness: number | null;
  effect: number | null;
};

export function collect(maps: SiteMaps[], roles: HeadRole[], effects: HeadEffect[]): Entry[] {
  const key = ({ site, head }: { site: number; head: number }) => `${site} ${head}`;
  const roleOf = new Map(roles.map((each) => [key(each), each]));
  const effectOf = new Map(effects.map((each) => [key(each), each.divergence]));
  return maps.flatMap(({ site, rows, cols, heads }) =>
    heads.map(({ head, top, cells }) => {
      const role = roleOf.get(key({ site, head }));
      return {
        site,
        head,
        rows,
        cols,
        top,
        cells: bytes(cells),
        role: role?.role ?? null,
        score: role?.score ?? null,
        sharpness: role?.sharpness ?? null,
        effect: effectOf.get(key({ site, head })) ?? null,
      };
    }),
  );
}

/** In the order that is asked for; what has no value comes last, and ties stay in order. */
export function sorted(entries: Entry[], order: Order): Entry[] {
  const down = (value: (entry: Entry) => number | null) =>
    entries.slice().sort((a, b) => (value(b) ?? -Infinity) - (value(a) ?? -Infinity));
  if (order === 'sharpness') return down(({ sharpness }) => sharpness);
  if (order === 'effect') return down(({ effect }) => effect);
  if (order === 'role') {
    const ranked = down(({ score }) => score);
    return ranked.sort((a, b) => (a.role ?? '~').localeCompare(b.role ?? '~'));
  }
  return entries;
}
