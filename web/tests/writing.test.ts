// Writing: what the address says about it, and where the hypotheses of a search lie.

import { expect, test } from 'vitest';
import { places, step, way } from '../src/bench/rooms/writing/beams';
import { readKept, readSettings, within, writtenKept } from '../src/bench/rooms/writing/settings';
import type { BeamNode, Fate } from '../src/bench/rooms/writing/wire';

test('settings are read from the address, within their limits', () => {
  expect(readSettings({}, true)).toMatchObject({ beams: 4, temperature: 0 });
  expect(readSettings({}, false)).toMatchObject({ beams: 1, temperature: 0.8, top_k: null });
  const options = { 'writing.temperature': '1.5', 'writing.top_k': '7.6', 'writing.beams': '99' };
  expect(readSettings(options, false)).toMatchObject({ temperature: 1.5, top_k: 8, beams: 8 });
  expect(readSettings({ 'writing.seed': 'x', 'writing.top_p': '' }, false)).toMatchObject({
    seed: 1,
    top_p: null,
  });
  expect(within('temperature', '-1')).toBe(0);
});

test('kept tokens belong to one text', () => {
  const kept = writtenKept([5, 0, 77], 'one');
  expect(readKept(kept!, 'one')).toEqual([5, 0, 77]);
  expect(readKept(kept!, 'another')).toEqual([]);
  expect(writtenKept([], 'one')).toBeNull();
  for (const wrong of [undefined, '', '~', 'x~1', `${kept}.`, `${kept}.-1`, `${kept}.1e3`])
    expect(readKept(wrong, 'one')).toEqual([]);
});

const node = (parent: number | null, depth: number, log_probability: number, fate: Fate): BeamNode => ({
  parent,
  depth,
  log_probability,
  fate,
  token: 0,
  piece: '',
  text: '',
  score: 0,
  least_kept: null,
  is_best: false,
});
const tree = [
  node(null, 0, -1, 'extended'),
  node(null, 0, -0.5, 'extended'),
  node(null, 0, -9, 'pruned'),
  node(0, 1, -1.1, 'finished'),
  node(1, 1, -2, 'open'),
];

test('the likeliest hypotheses are on top, and pruned ones are shown on demand', () => {
  const spots = places(tree, false);
  expect([...spots.keys()]).toEqual([1, 0, 3, 4]);
  expect(spots.get(1)).toEqual({ node: 1, row: 0, children: [4] });
  expect(spots.get(3)!.row).toBe(0);
  expect(places(tree, true).get(2)!.row).toBe(2);
  expect(way(tree, 4)).toEqual([1, 4]);
});

test('keys walk through the tree', () => {
  const spots = places(tree, false);
  const go = (key: string, from: number) => step(key, from, spots, tree);
  expect(go('ArrowRight', 1)).toBe(4);
  expect(go('ArrowRight', 4)).toBe(4);
  expect(go('ArrowLeft', 4)).toBe(1);
  expect(go('ArrowDown', 1)).toBe(0);
  expect(go('ArrowUp', 1)).toBe(1);
  expect(go('Enter', 1)).toBeNull();
});
