// The river: as wide as the norms, all on one scale.

import { expect, test } from 'vitest';
import { column, courseOf, MIDDLE } from '../src/bench/rooms/flow/course';
import type { Inflow } from '../src/bench/rooms/flow/wire';

const part = (name: string, kind: Inflow['kind'], norm: number): Inflow => ({
  name,
  kind,
  layer: 0,
  site: null,
  norm,
  share: 0.5,
});

test('borders and inflows share one scale', () => {
  const borders = [2, 4, 8].map((norm, n) => ({ name: `b${n}`, norm }));
  const course = courseOf(borders, [part('a', 'self', 4), part('m', 'mlp', 2)]);
  expect(course.scale).toBe(12);
  expect(course.inflows.map(({ line }) => line)).toEqual([48, 24]);
  expect(course.inflows.map(({ isAbove }) => isAbove)).toEqual([true, false]);
  expect(course.bed).toContain(`${column(2)} ${MIDDLE - 48}`);
  expect(course.bed).toContain(`${column(0)} ${MIDDLE + 12}`);
});

test('a stream of zeros is still a line', () => {
  const course = courseOf([{ name: 's', norm: 0 }], [part('a', 'cross', 0)]);
  expect(course.bed).not.toContain('NaN');
  expect(course.inflows[0].line).toBeGreaterThan(0);
});
