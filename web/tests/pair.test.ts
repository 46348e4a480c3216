// Two heads side by side: which tokens belong together, how far the weights are apart, in what colour.

import { expect, test } from 'vitest';
import { align, carry } from '../src/bench/rooms/look/alignment';
import { counterpartOf } from '../src/bench/rooms/look/second.svelte';
import { differ, differencePixels, NOWHERE } from '../src/trace/difference';
import { picture, type Settings } from '../src/trace/picture';
import { HIDDEN, type Summary } from '../src/trace/summary';
import type { SiteParts } from '../src/trace/wire';
import { luminance, signedColour } from '../src/view/colour';

const words = (text: string) => text.split(' ');

test('texts of one length are compared place by place, as gf.compare does', () => {
  const { there } = align(words('a b c d'), words('b c d a'));
  expect(there).toEqual([0, 1, 2, 3]);
});

test('other texts are aligned by their tokens, both ways', () => {
  const first = words('And God said unto Moses , Go');
  const second = words('And the Lord God said unto Aaron , Go');
  const { there, back } = align(first, second);
  expect(there).toEqual([0, 3, 4, 5, 6, 7, 8]); // Moses and Aaron are in the same place
  expect(back).toEqual([0, null, null, 1, 2, 3, 4, 5, 6]);
  expect(carry({ query: 1, key: 6 }, there, there)).toEqual({ query: 3, key: 8 });
  expect(carry({ query: 1, key: 3 }, back, back)).toBe(null);
});

test('pieces that spell the same belong together; the sign of a space does not count', () => {
  const { there, back } = align(words('The cat sits'), words('<s> ␣the ␣c at ␣si ts'));
  expect(there).toEqual([1, 2, 4]);
  expect(back).toEqual([null, 0, 1, null, 2, null]);
});

test('what has nothing in common has no partners; neither has an empty text', () => {
  expect(align(words('a b c'), words('x y')).there).toEqual([null, null, null]);
  expect(align([], words('x y'))).toEqual({ there: [], back: [null, null] });
});

test('very long texts keep what begins and ends alike', () => {
  const long = Array.from({ length: 9000 }, (_, i) => `w${i}`);
  const other = [...long.slice(0, 100), ...long.slice(100, 4600).map((w) => `x${w}`), 'y', ...long.slice(8900)];
  const { there } = align(long, other);
  expect(there.slice(0, 100)).toEqual(Array.from({ length: 100 }, (_, i) => i));
  expect(there[5000]).toBe(null);
  expect(there.at(-1)).toBe(other.length - 1);
});

const site = (name: string, heads: number): SiteParts =>
  ({ name, heads: Array.from({ length: heads }, (_, i) => i) }) as SiteParts;

test('a head has its counterpart: the same name, else as deep in a stack of its kind', () => {
  const own = [0, 1, 2, 3, 4].map((n) => site(`decoder.${n}.self`, 4));
  const encoder = [0, 1, 2].map((n) => site(`encoder.${n}.self`, 7));
  expect(counterpartOf({ site: own[2], head: 3 }, own, own)).toEqual({ site: own[2], head: 3 });
  expect(counterpartOf({ site: own[4], head: 3 }, own, encoder)).toEqual({ site: encoder[2], head: 3 });
  expect(counterpartOf({ site: encoder[1], head: 6 }, encoder, own)).toEqual({ site: own[2], head: 3 });
});

const [A, B] = [
  [1, HIDDEN, 0.25, 0.75],
  [1, HIDDEN, 0.75, 0.25],
].map((rows) => Float32Array.from(rows));
const SETTINGS: Settings = {
  scale: 'largest',
  isRooted: false,
  isDark: false,
  pool: 'max',
  leavesFirst: false,
  factor: 1,
};
const pixel = (rgba: Uint8ClampedArray, n: number) => [...rgba.slice(4 * n, 4 * n + 3)];

test('a difference is the second less the first; rows tell their distance', () => {
  const found = differ(A, B, 2, 2);
  expect([...found.values]).toEqual([0, NOWHERE, 0.5, -0.5]);
  expect([...found.rows]).toEqual([0, 0.5]);
  expect(found.mean).toBe(0.25);
});

test('the scale of a difference is symmetric, and 0 is paper', () => {
  const { rgba, top } = differencePixels(differ(A, B, 2, 2), SETTINGS);
  expect(top).toBe(0.5);
  expect(pixel(rgba, 0)).toEqual([255, 255, 255]);
  expect(rgba[7]).toBe(0); // nothing is painted where both hide it
  expect(pixel(rgba, 2)).toEqual(signedColour(1, false));
  expect(pixel(rgba, 3)).toEqual(signedColour(-1, false));
});

test('a block of cells shows its largest difference with its sign, or the mean', () => {
  const apart = differ(Float32Array.from([0.5, 0.5, 0.5, 0.5]), Float32Array.from([0.75, 0.25, 1, 0]), 2, 2);
  const of = (pool: 'max' | 'mean') => differencePixels(apart, { ...SETTINGS, factor: 2, pool });
  expect(of('max').rgba.length).toBe(4);
  expect(pixel(of('max').rgba, 0)).toEqual(signedColour(1, false)); // +½, before −½
  expect(pixel(of('mean').rgba, 0)).toEqual([255, 255, 255]);
});

test('both directions are as light as each other at every step', () => {
  for (const isDark of [false, true]) {
    for (let step = 0; step <= 1; step += 0.0625) {
      const [up, down] = [step, -step].map((share) => luminance(signedColour(share, isDark)));
      expect(Math.abs(up - down)).toBeLessThan(0.01);
    }
  }
});

test('two maps share a scale: the strongest colour stands for at least the other’s largest', () => {
  const none = new Float64Array(0);
  const statistics = { visible: Float64Array.from([2, 2]), entropy: none, peak: none, distance: none, received: none };
  const summary: Summary = { L: 2, S: 2, step: 1, weights: Float32Array.from([0.5, 0.5, 0.25, 0.75]), statistics };
  expect(picture(summary, SETTINGS).top).toBe(0.75);
  expect(picture(summary, { ...SETTINGS, least: 0.9 }).top).toBe(0.9);
  expect(picture(summary, { ...SETTINGS, least: 0.3 }).top).toBe(0.75);
  expect(picture(summary, { ...SETTINGS, scale: 'row', least: 0.3 }).top).toBe(1);
});
