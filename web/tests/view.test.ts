// What the page says and how numbers, colours and keys behave.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { colourOf, inkOn, luminance, type Colour } from '../src/view/colour';
import { read, written, type Chosen } from '../src/view/address';
import { column, fixed, number, percent, scientific, significant, weight } from '../src/view/format';
import { moved } from '../src/view/moves';
import { rowsInSight } from '../src/view/rows';
import { typed } from '../src/view/shortcuts';

const root = join(import.meta.dirname, '..');
const textOf = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.(ts|svelte)$/.test(name))
  .map((name) => textOf('src', name));

test.each(['en', 'zh'])('every text of the page is in the catalogue, and used: %s', (code) => {
  const catalogue = JSON.parse(textOf('..', 'src', 'glassformer', 'languages', `${code}.json`));
  const offered = Object.keys(catalogue).filter((key) => /^(page|bench)\./.test(key));
  const asked = sources.flatMap((source) => source.match(/'(page|bench)(\.[a-z]+)+'/g) ?? []);
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
  expect(significant(0.0004213)).toBe('0.00042');
  expect(significant(0.5)).toBe('0.5');
  expect(significant(0.00000312)).toBe('3.1e−6');
  expect(significant(0)).toBe('0');
  expect(percent(0.96123)).toBe('96.1 %');
  expect(percent(1)).toBe('100 %');
  expect(percent(0.000312)).toBe('0.031 %');
  expect(percent(1e-9)).toBe('< 0.0001 %');
  expect(percent(0)).toBe('0 %');
});

test('colours run from paper to ink, evenly in lightness', () => {
  expect(colourOf(0, false)).toEqual([255, 255, 255]);
  expect(colourOf(0, true)).toEqual([24, 28, 31]);
  expect(colourOf(2, false)).toEqual(colourOf(1, false));
  for (const isDark of [false, true]) {
    const greys = Array.from({ length: 101 }, (_, i) => grey(colourOf(i / 100, isDark)));
    const steps = greys.slice(1).map((value, i) => (value - greys[i]) * (isDark ? 1 : -1));
    expect(Math.min(...steps)).toBeGreaterThan(0);
    expect(Math.max(...steps)).toBeLessThan((2.5 * Math.abs(greys[100] - greys[0])) / 100);
    // Digits on a cell can be read: WCAG asks for a contrast of 4.5.
    for (let i = 0; i <= 100; i++) {
      const ink = inkOn(i / 100, isDark) === '#000' ? 0 : 1;
      const [low, high] = [ink, luminance(colourOf(i / 100, isDark))].sort((a, b) => a - b);
      expect((high + 0.05) / (low + 0.05), `${isDark} ${i}`).toBeGreaterThan(4.5);
    }
  }
});

const grey = (c: Colour): number => 116 * Math.cbrt(luminance(c)) - 16; // CIE lightness

test('arrows move within the matrix', () => {
  const at = { row: 1, column: 2 };
  expect(moved('ArrowUp', at, 3, 4)).toEqual({ row: 0, column: 2 });
  expect(moved('ArrowRight', { row: 1, column: 3 }, 3, 4)).toEqual({ row: 1, column: 3 });
  expect(moved('PageDown', at, 3, 4)).toEqual({ row: 2, column: 2 });
  expect(moved('Home', at, 3, 4)).toEqual({ row: 1, column: 0 });
  expect(moved('End', at, 3, 4)).toEqual({ row: 1, column: 3 });
  expect(moved('x', at, 3, 4)).toBeNull();
});

test('rows in sight, and some around them', () => {
  expect(rowsInSight(0, 100, 25, 3).rows).toEqual([0, 1, 2]);
  const { from, to, rows } = rowsInSight(25_000, 500, 25, 2048);
  expect([from, to, rows.length]).toEqual([990, 1030, 40]);
  expect(rowsInSight(1e9, 100, 25, 50).to).toBe(50);
});

type Press = Partial<KeyboardEvent> & { graph?: boolean };
const press = ({ graph = false, ...event }: Press, isMac = false) =>
  typed(
    {
      ctrlKey: false,
      altKey: false,
      metaKey: false,
      isComposing: false,
      code: '',
      getModifierState: (name: string) => graph && name === 'AltGraph',
      ...event,
    } as KeyboardEvent,
    isMac,
  );

test('what a key press types, on any layout', () => {
  expect(press({ key: 't' })).toBe('t');
  expect(press({ key: '?', shiftKey: true })).toBe('?');
  // AltGr + 8 on a German keyboard: Windows says Ctrl and Alt as well, Linux does not.
  expect(press({ key: '[', ctrlKey: true, altKey: true, graph: true })).toBe('[');
  expect(press({ key: '[', graph: true })).toBe('[');
  expect(press({ key: '[', altKey: true }, true)).toBe('['); // Option + 5
  expect(press({ key: 't', ctrlKey: true })).toBeNull();
  expect(press({ key: 't', altKey: true })).toBeNull();
  expect(press({ key: 't', metaKey: true })).toBeNull();
  expect(press({ key: 't', ctrlKey: true, altKey: true })).toBeNull();
  expect(press({ key: 'е', code: 'KeyT' })).toBe('t'); // the same key on a Russian keyboard
  expect(press({ key: 'é', code: 'Digit2' })).toBe('é');
  expect(press({ key: 'Enter' })).toBeNull();
  expect(press({ key: 'Dead' })).toBeNull();
  expect(press({ key: 't', isComposing: true })).toBeNull();
});

const usual: Chosen = {
  run: 0,
  sequence: 0,
  site: 'decoder.0.self',
  head: 2,
  query: 3,
  key: 1,
  view: 'heat',
  text: false,
  scale: null,
  root: null,
  pool: 'max',
  first: true,
  lines: 3,
  shortcuts: true,
  theme: 'auto',
  lang: null,
};

test('what is chosen survives as an address', () => {
  expect(written(usual, usual)).toBe('');
  expect(written({ ...usual, view: 'lines' }, usual)).toBe('view=lines');
  expect(written({ ...usual, key: 2 }, usual)).toBe('site=decoder.0.self&head=2&query=3&key=2');
  expect(read('', usual)).toEqual(usual);
  const other: Chosen = {
    run: 1,
    sequence: 2,
    site: 'mine & yours=#1',
    head: 0,
    query: 0,
    key: 7,
    view: 'lines',
    text: true,
    scale: 'row',
    root: false,
    pool: 'mean',
    first: false,
    lines: 10,
    shortcuts: false,
    theme: 'dark',
    lang: 'zh',
  };
  expect(read(`#${written(other, usual)}`, usual)).toEqual(other);
});

test('what an address says wrongly is as usual', () => {
  const wrong = '#run=-1&head=x&query=1e9&key=99999999999&view=run&text=2&scale=&lines=4&theme=on';
  expect(read(wrong, usual)).toEqual(usual);
});
