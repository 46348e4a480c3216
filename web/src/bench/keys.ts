// What the keyboard does in each room, for those who ask with ?; and the keys of the path.

import { EXPLORER_KEYS, type KeyRow } from '../view/shortcuts';
import type { Bench } from './bench.svelte';

const PATH: readonly KeyRow[] = [
  ['[ ] p n', 'page.keys.head'],
  [', .', 'page.keys.site'],
];
const COMMON: readonly KeyRow[] = [
  ['l', 'bench.keys.language'],
  ['?', 'page.keys.keys'],
  ['Esc', 'page.keys.close'],
];
const COMMON_TEXTS = new Set(COMMON.map(([, text]) => text));

const ROOMS: Record<string, readonly KeyRow[]> = {
  look: EXPLORER_KEYS.filter(([, text]) => !COMMON_TEXTS.has(text)),
  steps: [
    ['← →', 'bench.keys.steps.step'],
    ['↑ ↓', 'bench.keys.steps.number'],
    ['Space', 'bench.keys.play'],
    ['← ↑ → ↓', 'bench.keys.steps.strip'],
    ...PATH,
  ],
  shapes: [
    ['↑ ↓', 'bench.keys.shapes.move'],
    ['Home End', 'bench.keys.shapes.ends'],
    ['Enter →', 'bench.keys.shapes.unfold'],
    ['←', 'bench.keys.shapes.out'],
    ['Esc', 'bench.keys.shapes.fold'],
    ...PATH,
  ],
  touch: [
    ['← ↑ → ↓', 'bench.keys.cell'],
    ['Home End', 'page.keys.ends'],
    ['PgUp PgDn', 'page.keys.ten'],
    ['Enter', 'bench.keys.touch.apply'],
    ...PATH,
  ],
  flow: [
    ['← ↑ → ↓', 'bench.keys.flow.move'],
    ['Enter', 'bench.keys.flow.unfold'],
    ['← →', 'bench.keys.flow.tabs'],
    ...PATH,
  ],
  atlas: [
    ['← ↑ → ↓', 'bench.keys.atlas.cell'],
    ['Shift ← ↑ → ↓', 'bench.keys.atlas.pan'],
    ['+ − 0', 'page.keys.zoom'],
    ['Enter', 'bench.keys.atlas.enter'],
    ...PATH,
  ],
  writing: [
    ['← →', 'bench.keys.writing.token'],
    ['Home End', 'bench.keys.writing.ends'],
    ['← ↑ → ↓', 'bench.keys.writing.beams'],
    ...PATH,
  ],
  training: [
    ['← →', 'bench.keys.training.step'],
    ['PgUp PgDn', 'bench.keys.training.ten'],
    ['Home End', 'bench.keys.training.ends'],
  ],
  learn: [
    ['← →', 'bench.keys.learn.chart'],
    ['1 2 3 4', 'bench.keys.learn.grade'],
    ['Tab Shift+Tab', 'bench.keys.learn.indent'],
    ['Esc Tab', 'bench.keys.learn.leave'],
    ['Ctrl+Enter', 'bench.keys.learn.check'],
  ],
};

export const rowsOf = (room: string): readonly KeyRow[] => [...(ROOMS[room] ?? []), ...COMMON];

/** Go to the head or site that a sign names; false where it names none. Look has keys of its own. */
export function followPath(bench: Bench, sign: string): boolean {
  const { at, run } = bench;
  if (at === null || run === null || bench.place.room === 'look') return false;
  const next = <T>(all: readonly T[], one: T, by: number): T =>
    all[(all.indexOf(one) + by + all.length) % all.length];
  if ('[p'.includes(sign)) bench.go({ head: next(at.site.heads, at.head, -1) });
  else if (']n'.includes(sign)) bench.go({ head: next(at.site.heads, at.head, 1) });
  else if (sign === ',') bench.go({ site: next(run.parts.sites, at.site, -1).name });
  else if (sign === '.') bench.go({ site: next(run.parts.sites, at.site, 1).name });
  else return false;
  return true;
}
