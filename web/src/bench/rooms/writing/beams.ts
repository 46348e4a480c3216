// Where the hypotheses of a beam search lie: a column for each token, the likeliest text on top.

import type { BeamNode } from './wire';

export type Spot = { node: number; row: number; children: number[] };

/** The nodes that are shown, column by column, each from top to bottom. */
export function places(tree: BeamNode[], hasPruned: boolean): Map<number, Spot> {
  const columns: number[][] = [];
  tree.forEach((node, n) => {
    if (hasPruned || node.fate !== 'pruned') (columns[node.depth] ??= []).push(n);
  });
  const found = new Map<number, Spot>();
  for (const column of columns) {
    column.sort((a, b) => tree[b].log_probability - tree[a].log_probability);
    column.forEach((n, row) => {
      found.set(n, { node: n, row, children: [] });
      found.get(tree[n].parent ?? -1)?.children.push(n);
    });
  }
  return found;
}

/** From the beginning of the text to a node. */
export function way(tree: BeamNode[], n: number): number[] {
  const found: number[] = [];
  for (let at: number | null = n; at !== null; at = tree[at].parent) found.unshift(at);
  return found;
}

/** Where a key leads: → to the best continuation, ← back, ↑ and ↓ to the neighbour. */
export function step(key: string, at: number, spots: Map<number, Spot>, tree: BeamNode[]): number | null {
  const spot = spots.get(at);
  if (spot === undefined) return null;
  const column = [...spots.values()].filter(({ node }) => tree[node].depth === tree[at].depth);
  const index = column.findIndex(({ node }) => node === at);
  switch (key) {
    case 'ArrowRight':
      return spot.children[0] ?? at;
    case 'ArrowLeft':
      return tree[at].parent ?? at;
    case 'ArrowUp':
      return column[Math.max(0, index - 1)].node;
    case 'ArrowDown':
      return column[Math.min(column.length - 1, index + 1)].node;
    default:
      return null;
  }
}
