// The room Shapes: sizes that fit, boxes that unfold, and costs as people read them.

import { expect, test } from 'vitest';
import { canOpen, firstOpen, frames, visible } from '../src/bench/rooms/shapes/layout';
import { nameOf } from '../src/bench/rooms/shapes/names';
import { brief, bytesOf, findMisfit, lettersIn, readSize } from '../src/bench/rooms/shapes/sizes';
import type { Box } from '../src/bench/rooms/shapes/wire';

const cost = { parameters: 0, flops: 0, bytes: 0 };
const box = (id: string, kind: Box['kind'], children: Box[] = [], more: Partial<Box> = {}): Box => ({
  id, kind, name: id, detail: '', count: 1, blocks: [], cost, inputs: [], outputs: [], parameters: [],
  product: null, is_held: true, is_tied: false, children, ...more,
}); // prettier-ignore
const product = { left: ['B', 'L', 'C'], right: ['F', 'C'], out: ['B', 'L', 'F'], summed: 'C' };
const leaf = box('up', 'step', [], { product });
const model = box('model', 'model', [box('decoder', 'stack', [box('block', 'block', [leaf])]), box('head', 'section')]);

test('only boxes inside unfolded ones are visible', () => {
  const ids = (open: string[]) => visible(model, new Set(open)).map((line) => `${line.depth} ${line.box.id}`);
  expect(ids([])).toEqual(['0 model']);
  expect(ids(firstOpen(model))).toEqual(['0 model', '1 decoder', '2 block', '1 head']);
  expect(ids(['model', 'block'])).toEqual(['0 model', '1 decoder', '1 head']);
  expect([canOpen(leaf), canOpen(box('x', 'step'))]).toEqual([true, false]);
});

test('an unfolded box frames what is inside it', () => {
  const lines = visible(model, new Set(['model', 'decoder']));
  const found = frames(lines, [10, 20, 30, 40]).map(({ line, top, height }) => [line.box.id, top, height]);
  expect(found).toEqual([['model', 0, 100], ['decoder', 10, 50], ['block', 30, 30], ['head', 60, 40]]);
});

test('sizes that do not fit are named with some that do', () => {
  expect(findMisfit(256, 4, 4, false)).toBeNull();
  expect(findMisfit(256, 3, 3, true)).toBeNull(); // heads of a width of their own
  expect(findMisfit(256, 3, 3, false)).toMatchObject({ key: 'bench.shapes.divide', field: 'heads', values: { fitting: '1, 2, 4' } });
  expect(findMisfit(256, 8, 3, false)).toMatchObject({ key: 'bench.shapes.group', field: 'kv_heads', values: { fitting: '1, 2, 4' } });
  expect(readSize('layers', '12')).toBe(12);
  for (const text of ['0', '-1', '1.5', '129', '', 'x']) expect(readSize('layers', text)).toHaveProperty('key');
});

test('costs are written briefly', () => {
  expect([brief(999), brief(11_001_344), brief(1.75e11)]).toEqual(['999', '11.0 M', '175 G']);
  expect([bytesOf(512), bytesOf(3_423_744)]).toEqual(['512 B', '3.27 MiB']);
});

test('letters are found in products of sizes', () => {
  expect(lettersIn('(H+2K)·D')).toEqual(['H', 'K', 'D']);
  expect(lettersIn('max_len')).toEqual(['max_len']);
});

test('boxes have names', () => {
  const say = (key: string, values: Record<string, string | number> = {}) => `${key.split('.').pop()} ${values.detail ?? ''}`.trim();
  expect(nameOf(box('b', 'block', [], { name: 'block', blocks: [0, 1, 2] }), say)).toBe('block 0 … 2');
  expect(nameOf(box('n', 'step', [], { name: 'norm', detail: 'RMSNorm' }), say)).toBe('RMSNorm');
  expect(nameOf(box('s', 'step', [], { name: 'scale', detail: '16.0' }), say)).toBe('× 16');
  expect(nameOf(box('g', 'step', [], { name: 'gelu' }), say)).toBe('gelu');
});
