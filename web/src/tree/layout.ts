// Where the open nodes of a tree lie: a row for each leaf, a column for each level.

import type { NodeParts } from './wire';

export type Place = {
  key: string; // the way to it: "0.2.1"
  node: NodeParts;
  parent: string | null;
  level: number;
  row: number; // of its middle; between rows where several lie below it
  index: number; // among its siblings, and how many these are
  siblings: number;
  isOpen: boolean;
};

/** The nodes that can be seen, parents before children, from top to bottom. */
export function places(root: NodeParts, open: ReadonlySet<string>): Place[] {
  const found: Place[] = [];
  let rows = 0;
  const put = (node: NodeParts, key: string, parent: string | null, at: [number, number, number]) => {
    const [level, index, siblings] = at;
    const isOpen = node.children.length > 0 && open.has(key);
    const place: Place = { key, node, parent, level, row: 0, index, siblings, isOpen };
    found.push(place);
    if (!isOpen) {
      place.row = rows++;
      return place;
    }
    const n = node.children.length;
    const below = node.children.map((child, i) => put(child, `${key}.${i}`, key, [level + 1, i, n]));
    place.row = (below[0].row + below[n - 1].row) / 2;
    return place;
  };
  put(root, '0', null, [0, 0, 1]);
  return found;
}

/** The largest size in each unit, of the whole tree: widths do not change when nodes open. */
export function largestByUnit(root: NodeParts): Map<string, number> {
  const found = new Map<string, number>();
  const visit = (node: NodeParts) => {
    const size = Math.abs(node.value ?? 0);
    found.set(node.unit, Math.max(found.get(node.unit) ?? 0, size));
    node.children.forEach(visit);
  };
  visit(root);
  return found;
}

/** Where a key leads from a node, as in any tree: the next one, or the node opened or closed. */
export function step(
  key: string,
  at: Place,
  all: Place[],
): { to?: string; open?: string; close?: string } | null {
  const index = all.findIndex((each) => each.key === at.key);
  const to = (n: number) => ({ to: all[Math.min(Math.max(n, 0), all.length - 1)].key });
  switch (key) {
    case 'ArrowDown':
      return to(index + 1);
    case 'ArrowUp':
      return to(index - 1);
    case 'Home':
      return to(0);
    case 'End':
      return to(all.length - 1);
    case 'ArrowRight':
      if (at.node.children.length === 0) return null;
      return at.isOpen ? to(index + 1) : { open: at.key };
    case 'ArrowLeft':
      if (at.isOpen) return { close: at.key };
      return at.parent === null ? null : { to: at.parent };
    default:
      return null;
  }
}
