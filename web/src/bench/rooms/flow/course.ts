// Where the river runs: a column for each border, its width the norm of the state there, and what
// each part adds flows in between two borders, as wide as its own norm on the same scale.

import type { Border, Inflow } from './wire';

export const STEP = 92; // pixels between borders
export const MIDDLE = 92; // of the river
const WIDEST = 96; // pixels of the largest norm
const LEAST = 1.5;

export type Course = {
  width: number;
  height: number;
  scale: number; // pixels of a norm of 1
  bed: string; // the outline of the river
  inflows: { part: Inflow; path: string; line: number; isAbove: boolean; x: number }[];
};

export const column = (n: number): number => STEP / 2 + n * STEP;

export function courseOf(borders: Border[], inflows: Inflow[]): Course {
  const norms = [...borders, ...inflows].map(({ norm }) => norm);
  const scale = WIDEST / Math.max(1e-30, ...norms);
  const half = (norm: number) => Math.max(LEAST, norm * scale) / 2;
  const bank = (sign: 1 | -1) =>
    borders.map(({ norm }, n) => [column(n), MIDDLE + sign * half(norm)] as const);
  return {
    width: borders.length * STEP,
    height: 2 * MIDDLE,
    scale,
    bed: `M${curve(bank(-1))}L${curve(bank(1).reverse())}Z`,
    inflows: inflows.map((part, n) => {
      const isAbove = part.kind !== 'mlp' && part.kind !== 'mixer';
      const x = column(n) + STEP / 2;
      const from = isAbove ? 4 : 2 * MIDDLE - 4;
      // It bends into the river's direction, and ends at the next border.
      const path = `M${x - 18} ${from}C${x - 18} ${MIDDLE} ${x} ${MIDDLE} ${column(n + 1)} ${MIDDLE}`;
      return { part, path, line: 2 * half(part.norm), isAbove, x };
    }),
  };
}

/** A smooth line through points, without the first M. */
function curve(points: (readonly [number, number])[]): string {
  return points
    .map(([x, y], n) => {
      if (n === 0) return `${x} ${y}`;
      const [before, above] = points[n - 1];
      const bend = (before + x) / 2;
      return `C${bend} ${above} ${bend} ${y} ${x} ${y}`;
    })
    .join('');
}
