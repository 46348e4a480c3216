// What the page says and how numbers, colours and keys behave.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { viridis } from '../src/view/colour';
import { column, fixed, number, scientific, weight } from '../src/view/format';
import { moved } from '../src/view/moves';

const root = join(import.meta.dirname, '..');
const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.(ts|svelte)$/.test(name))
  .map((name) => read('src', name));

test.each(['en', 'zh'])('every text of the page is in the catalogue, and used: %s', (code) => {
  const catalogue = JSON.parse(read('..', 'src', 'glassformer', 'languages', `${code}.json`));
  const offered = Object.keys(catalogue).filter((key) => key.startsWith('page.'));
  const asked = sources.flatMap((source) => source.match(/'page(\.[a-z]+)+'/g) ?? []);
  expect(new Set(asked.map((key) => key.slice(1, -1)))).toEqual(new Set(offered));
});

test('numbers', () => {
  expect(number(-1.23456789)).toBe('−1.2346');
  expect(number(0)).toBe('0');
  expect(number(-Infinity)).toBe('−∞');
  expect(number(0.00001234)).toBe('1.23e−5');
  expect(fixed(-0.5, 2)).toBe('−0.50');
  expect(column([1.5, -0.25])).toEqual(['1.5000', '−0.2500']);
  expect(column([0.002, -0.00001])).toEqual(['0.002000', '−1.00e−5']);
  expect(weight(0)).toBe('0');
  expect(weight(3.1e-7)).toBe('3.1e−7');
  expect(weight(0.12345)).toBe('0.1235');
  expect(scientific(0.00021)).toBe('2.1e−4');
});

test('colours run from dark violet to yellow', () => {
  expect(viridis(0)).toEqual([68, 1, 84]);
  expect(viridis(1)).toEqual([253, 231, 37]);
  expect(viridis(2)).toEqual(viridis(1));
});

test('arrows move within the matrix', () => {
  const at = { row: 1, column: 2 };
  expect(moved('ArrowUp', at, 3, 4)).toEqual({ row: 0, column: 2 });
  expect(moved('ArrowRight', { row: 1, column: 3 }, 3, 4)).toEqual({ row: 1, column: 3 });
  expect(moved('PageDown', at, 3, 4)).toEqual({ row: 2, column: 2 });
  expect(moved('Home', at, 3, 4)).toEqual({ row: 1, column: 0 });
  expect(moved('End', at, 3, 4)).toEqual({ row: 1, column: 3 });
  expect(moved('x', at, 3, 4)).toBeNull();
});
