// The boxes that are visible, from top to bottom: those inside of unfolded ones, indented.

import type { Box } from './wire';

export type Line = { box: Box; depth: number; isOpen: boolean; parent: Box | null };

export function visible(box: Box, open: ReadonlySet<string>, depth = 0, parent: Box | null = null): Line[] {
  const isOpen = open.has(box.id) && canOpen(box);
  const line = { box, depth, isOpen, parent };
  return isOpen ? [line, ...box.children.flatMap((each) => visible(each, open, depth + 1, box))] : [line];
}

/** Boxes have boxes inside; a product has its einsum. */
export const canOpen = (box: Box): boolean => box.children.length > 0 || box.product !== null;

/** What is open at first: the model and its stacks. */
export const firstOpen = (model: Box): string[] => ['model', ...model.children.filter(({ kind }) => kind === 'stack').map(({ id }) => id)];

/** The spans of an unfolded box in the drawing: the rows that it frames. */
export function frames(lines: Line[], heights: number[]): { line: Line; top: number; height: number }[] {
  const tops = heights.reduce<number[]>((all, each) => [...all, all[all.length - 1] + each], [0]);
  return lines.map((line, n) => {
    let last = n;
    while (last + 1 < lines.length && lines[last + 1].depth > line.depth) last++;
    return { line, top: tops[n], height: tops[last + 1] - tops[n] };
  });
}
