// Training: from logged lines to curves.

import { expect, test } from 'vitest';
import type { Measurement } from '../src/bench/rooms/training/wire';
import { lastUntil, pointsOf, range, ticks } from '../src/bench/rooms/training/curves';

const lines: Measurement[] = [
  { step: 10, epoch: 1, values: { loss: 2, lr: 0.1 } },
  { step: 10, epoch: 1, values: { valid_loss: 3 } },
  { step: 20, epoch: 1, values: { loss: 1, lr: 0.1 } },
];

test('curves are what was logged', () => {
  expect(pointsOf(lines, 'loss')).toEqual([
    { step: 10, value: 2 },
    { step: 20, value: 1 },
  ]);
  expect(pointsOf(lines, 'bleu')).toEqual([]);
  expect(lastUntil(lines, 15)).toBe(lines[1]);
  expect(lastUntil(lines, 3)).toBe(lines[0]);
  expect(lastUntil([], 3)).toBeNull();
});

test('axes span the values in round numbers', () => {
  expect(range([{ name: '', points: pointsOf(lines, 'loss') }])).toEqual([1, 2]);
  expect(range([{ name: '', points: pointsOf(lines, 'lr') }])).toEqual([0.05, expect.closeTo(0.15)]);
  expect(range([])).toEqual([0, 1]);
  expect(ticks(0, 60, 4)).toEqual([0, 20, 40, 60]);
  expect(ticks(0.9, 2.2, 4)).toEqual([1, 1.5, 2]);
});
