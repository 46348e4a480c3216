// How weights become colours: what is strong stays visible, however many cells share a pixel.

import { expect, test } from 'vitest';
import { picture, quantile, QUANTILE, type Settings } from '../src/trace/picture';
import { HIDDEN, type Summary } from '../src/trace/summary';
import { colourOf } from '../src/view/colour';

const SETTINGS: Settings = {
  scale: 'largest',
  isRooted: false,
  isDark: false,
  pool: 'max',
  leavesFirst: false,
  factor: 1,
};

function summaryOf(rows: number[][]): Summary {
  const visible = rows.map((row) => row.filter((weight) => weight !== HIDDEN).length);
  const none = new Float64Array(0);
  return {
    L: rows.length,
    S: rows[0].length,
    step: 1,
    weights: Float32Array.from(rows.flat()),
    statistics: {
      visible: Float64Array.from(visible),
      entropy: none,
      peak: none,
      distance: none,
      received: none,
    },
  };
}

const causal = (n: number, weight: (q: number, k: number) => number): Summary =>
  summaryOf(
    Array.from({ length: n }, (_, q) =>
      Array.from({ length: n }, (_, k) => (k > q ? HIDDEN : weight(q, k))),
    ),
  );

const pixel = ({ rgba, width }: ReturnType<typeof picture>, x: number, y: number): number[] =>
  Array.from(rgba.subarray(4 * (y * width + x), 4 * (y * width + x) + 4));
const STRONGEST = [...colourOf(1, false), 255];
const OPEN = [0, 0, 0, 0];

test('what the mask hides is left open, a weight of 0 is a colour', () => {
  const found = picture(summaryOf([[0, HIDDEN], [0.4, 0.6]]), SETTINGS);
  expect(pixel(found, 0, 0)).toEqual([...colourOf(0, false), 255]);
  expect(pixel(found, 1, 0)).toEqual(OPEN);
});

test('a query that sees a single key does not take the scale', () => {
  const found = picture(summaryOf([[1, HIDDEN, HIDDEN], [0.25, 0.75, HIDDEN], [0.5, 0.25, 0.25]]), SETTINGS);
  expect(found.top).toBe(0.75);
  expect(found.isCapped).toBe(true);
  expect(pixel(found, 1, 1)).toEqual(STRONGEST);
  const alone = picture(summaryOf([[1, HIDDEN]]), SETTINGS);
  expect([alone.top, alone.isCapped]).toEqual([1, false]);
});

test('one strong cell of many survives pooling by the maximum, not by the mean', () => {
  const summary = causal(64, (q, k) => (q === 50 && k === 20 ? 0.9 : 0.1 / (q + 1)));
  const [x, y] = [Math.floor(20 / 8), Math.floor(50 / 8)];
  const strong = picture(summary, { ...SETTINGS, factor: 8 });
  expect([strong.width, strong.height]).toEqual([8, 8]);
  expect(pixel(strong, x, y)).toEqual(STRONGEST);
  expect(strong.top).toBeCloseTo(0.9, 6);
  const weak = picture(summary, { ...SETTINGS, factor: 8, pool: 'mean' });
  expect(weak.top).toBeLessThan(0.05);
});

test('a mean is of visible cells only', () => {
  const summary = summaryOf([[0.5, HIDDEN], [0.2, 0.8]]);
  const found = picture(summary, { ...SETTINGS, factor: 2, pool: 'mean' });
  expect(found.top).toBeCloseTo(0.5, 6);
});

test('the scale by quantile keeps a few large weights from taking all colours', () => {
  const summary = causal(128, (q, k) => (k === 0 && q < 20 ? 0.9 : 0.01));
  const found = picture(summary, { ...SETTINGS, scale: 'quantile' });
  expect(found.top).toBeGreaterThanOrEqual(0.01);
  expect(found.top).toBeLessThan(0.0101);
  expect(found.isCapped).toBe(true);
  expect(pixel(found, 30, 100)).not.toEqual([...colourOf(0, false), 255]);
  const zoomedOut = picture(summary, { ...SETTINGS, scale: 'quantile', factor: 4 });
  expect(zoomedOut.top).toBe(found.top); // a colour means the same at every zoom
});

test('each row by itself', () => {
  const found = picture(summaryOf([[0.1, 0.05], [0.9, 0.1]]), { ...SETTINGS, scale: 'row' });
  expect(pixel(found, 0, 0)).toEqual(STRONGEST);
  expect(pixel(found, 0, 1)).toEqual(STRONGEST);
  expect(pixel(found, 1, 0)).toEqual([...colourOf(128 / 255, false), 255]);
});

test.each(['largest', 'quantile', 'row'] as const)('without the first key, %s', (scale) => {
  const summary = causal(64, (q, k) => (k === 0 && q > 0 ? 0.9 : k === 5 ? 0.1 : 0.001));
  const found = picture(summary, { ...SETTINGS, scale, leavesFirst: true });
  expect(pixel(found, 0, 40)).toEqual(OPEN);
  expect(pixel(found, 5, 40)).toEqual(STRONGEST);
  if (scale !== 'row') expect(found.top).toBeCloseTo(0.1, 3);
});

test('the square root lifts small weights', () => {
  const [plain, rooted] = [false, true].map((isRooted) =>
    picture(summaryOf([[1, 0.25, HIDDEN]]), { ...SETTINGS, isRooted }),
  );
  expect(pixel(plain, 1, 0)).toEqual([...colourOf(64 / 255, false), 255]);
  expect(pixel(rooted, 1, 0)).toEqual([...colourOf(128 / 255, false), 255]);
});

test('quantiles', () => {
  const values = Float32Array.from({ length: 1000 }, (_, i) => (i + 1) / 1000);
  expect(quantile([values], 1)).toBe(1);
  const found = quantile([values.subarray(0, 500), values.subarray(500)], QUANTILE);
  expect(found).toBeGreaterThanOrEqual(0.995 - 1e-6);
  expect(found).toBeLessThanOrEqual(0.995 * 1.008);
  expect(quantile([Float32Array.from([HIDDEN, NaN])], 0.5)).toBe(0);
  expect(quantile([Float32Array.from([0, 0, 0, 0.3])], 0.5)).toBeCloseTo(0.3, 6);
});

test('where some queries are known, each stands for those up to the next', () => {
  const some = { ...summaryOf([[1, HIDDEN, HIDDEN], [0.3, 0.7, HIDDEN], [0.2, 0.3, 0.5]]), L: 8, step: 3 };
  const found = picture(some, SETTINGS);
  expect([found.width, found.height, found.top]).toEqual([3, 8, Math.fround(0.7)]);
  const lines = Array.from({ length: 8 }, (_, y) => [0, 1, 2].map((x) => pixel(found, x, y)));
  for (const [line, known] of [[1, 0], [2, 0], [4, 3], [5, 3], [7, 6]]) {
    expect(lines[line]).toEqual(lines[known]);
  }
  expect(lines[3][1]).toEqual(STRONGEST);
  expect(lines[2][1]).toEqual(OPEN);
  const pooled = picture(some, { ...SETTINGS, factor: 2 }); // lines of queries 0–1, 2–3, 4–5, 6–7
  expect([pooled.width, pooled.height]).toEqual([2, 4]);
  expect(pixel(pooled, 0, 1)).toEqual(STRONGEST);
  expect(pixel(pooled, 0, 2)).toEqual(STRONGEST);
  expect(pixel(pooled, 1, 2)).toEqual(OPEN);
});
