import { describe, expect, it } from 'vitest';
import { largestByUnit, places, step } from '../src/tree/layout';
import type { NodeParts } from '../src/tree/wire';

const node = (name: string, value: number, children: NodeParts[] = [], unit = ''): NodeParts => ({
  name,
  value,
  note: '',
  unit,
  is_rest: false,
  is_sum: true,
  children,
});
const tree = node('root', 3, [
  node('a', 2, [node('a1', 1), node('a2', 0.5), node('a3', 0.5)]),
  node('b', 1, [node('q', -9, [], 'score')]),
]);

describe('a tree', () => {
  it('shows what is open, each leaf on a row of its own', () => {
    const closed = places(tree, new Set(['0']));
    expect(closed.map((each) => [each.node.name, each.level, each.row])).toEqual([
      ['root', 0, 0.5],
      ['a', 1, 0],
      ['b', 1, 1],
    ]);
    const open = places(tree, new Set(['0', '0.0']));
    expect(open.map((each) => [each.key, each.row])).toEqual([
      ['0', 2],
      ['0.0', 1],
      ['0.0.0', 0],
      ['0.0.1', 1],
      ['0.0.2', 2],
      ['0.1', 3],
    ]);
  });
  it('measures each unit by itself', () => {
    expect([...largestByUnit(tree)]).toEqual([
      ['', 3],
      ['score', 9],
    ]);
  });
  it('is walked by arrows', () => {
    const all = places(tree, new Set(['0']));
    const [root, a, b] = all;
    expect(step('ArrowDown', root, all)).toEqual({ to: '0.0' });
    expect(step('ArrowRight', a, all)).toEqual({ open: '0.0' });
    expect(step('ArrowRight', root, all)).toEqual({ to: '0.0' });
    expect(step('ArrowLeft', b, all)).toEqual({ to: '0' });
    expect(step('ArrowLeft', root, all)).toEqual({ close: '0' });
    expect(step('End', root, all)).toEqual({ to: '0.1' });
    expect(step('x', root, all)).toBeNull();
  });
});
