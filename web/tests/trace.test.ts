// Everything the browser computes, against numbers that Python wrote (tests/render/page_numbers.py).

import { describe, expect, test } from 'vitest';
import { arithmetic } from '../src/trace/arithmetic';
import { sharpness, spaced, strongest, type Head } from '../src/trace/head';
import { written } from '../src/trace/masks';
import { bytes, float32 } from '../src/trace/numbers';
import { WholeSource } from '../src/trace/source';
import { groups, labels, layer, shown } from '../src/trace/texts';
import type { SiteParts, TraceParts } from '../src/trace/wire';
import file from './numbers.json';

type Numbers = number[] | Numbers[];
const parts = file.trace as unknown as TraceParts;
const expected = file.sites as unknown as Record<
  string,
  Record<string, Numbers & Record<string, unknown>>
>;
const source = new WholeSource(parts);
const sites = parts.runs[0].sites;
const [B, H, L, S] = sites[0].shape;

function everyHead(visit: (head: Head, sequence: number, number: number) => void, site: number) {
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < H; h++) visit(source.head({ run: 0, site, sequence: b, head: h }), b, h);
  }
}

const worst = (found: ArrayLike<number>, wanted: number[]): number =>
  wanted.reduce((most, value, i) => Math.max(most, Math.abs(found[i] - value)), 0);

test('sixteen bits keep every value to 1.6e-5 of the largest of its row', () => {
  everyHead((head, b, h) => {
    const shared = Math.floor(h / 2);
    for (const [name, matrix, at] of [
      ['q', head.q, h],
      ['k', head.k, shared],
      ['v', head.v, shared],
    ] as const) {
      const rows = file.operands[name][b][at];
      rows.forEach((row, r) => {
        const most = Math.max(...row.map(Math.abs));
        const found = matrix.values.subarray(r * matrix.width, (r + 1) * matrix.width);
        expect(worst(found, row)).toBeLessThanOrEqual(1.6e-5 * most);
      });
    }
  }, 0);
});

test('base64 gives bytes and float32', () => {
  expect(Array.from(bytes('AQL/'))).toEqual([1, 2, 255]);
  expect(Array.from(float32('AACAPwAAAMA='))).toEqual([1, -2]);
});

describe.each(sites.map((site, number) => [site.name, number] as const))('%s', (name, number) => {
  test('weights', () => {
    everyHead((head, b, h) => {
      const wanted = (expected[name].weights as number[][][][])[b][h].flat();
      expect(worst(head.weights, wanted)).toBeLessThan(1e-6);
    }, number);
  });

  test('statistics', () => {
    everyHead((head, b, h) => {
      for (const which of ['entropy', 'peak', 'distance', 'received'] as const) {
        const wanted = (expected[name][which] as number[][][])[b][h];
        expect(worst(head.statistics[which], wanted)).toBeLessThan(1e-6);
      }
    }, number);
  });

  test('arithmetic', () => {
    const { sequence, head, query, key } = file.cell;
    const found = arithmetic(source.head({ run: 0, site: number, sequence, head }), query, key);
    for (const [field, wanted] of Object.entries(expected[name].arithmetic)) {
      const value = found[field as keyof typeof found];
      if (Array.isArray(wanted)) expect(worst(value as number[], wanted)).toBeLessThan(1e-6);
      else if (typeof wanted === 'number') expect(value).toBeCloseTo(wanted, 6);
      else if (wanted === null) expect(value === null || !Number.isFinite(value)).toBe(true);
      else expect(value).toBe(wanted);
    }
  });
});

test('storage moves a weight by no more than what is told', () => {
  const at = { run: 0, site: 0, sequence: 0, head: 1 };
  const head = source.head(at);
  const q = file.operands.q[0][1];
  const k = file.operands.k[0][0];
  for (let query = 0; query < L; query++) {
    const scores = k.map(
      (row) => row.reduce((sum, x, i) => sum + x * q[query][i], 0) * sites[0].scale,
    );
    const total = scores.reduce((sum, score) => sum + Math.exp(score), 0);
    for (let key = 0; key < S; key++) {
      const cell = arithmetic(head, query, key);
      expect(Math.abs(cell.dot - scores[key] / sites[0].scale)).toBeLessThanOrEqual(cell.dotError);
      expect(Math.abs(cell.weight - Math.exp(scores[key]) / total)).toBeLessThanOrEqual(
        cell.weightError,
      );
    }
  }
});

test('masks as one writes them', () => {
  const of = (name: string) => written(sites.find((site) => site.name === name)!.mask);
  expect(of('plain')).toBe('');
  expect(of('prefix')).toBe('Causal() | Prefix(length=[4, 2])');
  expect(of('padding')).toBe('Padding(lengths=[5, 3]) & Causal()');
  expect(of('not')).toBe('~Explicit(…)');
});

test('places evenly spaced, strongest keys, sharpness', () => {
  expect(spaced(3, 8)).toEqual([0, 1, 2]);
  expect(spaced(101, 3)).toEqual([0, 50, 100]);
  expect(strongest([0.1, 0.6, 0, 0.3], 2)).toEqual([1, 3]);
  expect(strongest([0, 0], 2)).toEqual([]);
  const head = source.head({ run: 0, site: 0, sequence: 0, head: 0 });
  const mean = Array.from(head.statistics.entropy).reduce((a, b) => a + b, 0) / L;
  expect(sharpness(head, spaced(L, 128))).toBeCloseTo(1 - mean / Math.log(S), 9);
});

test('an empty row has zeros, a broken one is not a number', () => {
  const head = source.head({ run: 0, site: 0, sequence: 0, head: 0 });
  const closed = Object.create(head, {
    scoring: { value: { ...head.scoring, allows: () => false } },
  }) as Head;
  expect(Array.from(closed.row(0).weights)).toEqual([0, 0, 0, 0, 0]);
  const broken = Object.create(head, {
    scoring: { value: { ...head.scoring, adds: (_: number, k: number) => (k === 1 ? NaN : 0) } },
  }) as Head;
  expect(broken.row(0).weights.every(Number.isNaN)).toBe(true);
});

test('tokens are shown whole and visible', () => {
  expect(shown(' cat ')).toBe('␣cat␣');
  expect(shown('a\nb')).toBe('a⏎b');
  expect(shown('\u202ex')).toBe('U+202Ex');
  expect(shown('\u0301')).toBe('◌\u0301');
  expect(shown('')).toBe('∅');
  expect(shown('👨\u200d👩\u200d👧')).toBe('👨\u200d👩\u200d👧');
  expect(shown('👋🏽\u200d🔥')).toBe('👋🏽\u200d🔥');
  expect(shown('a\u200db\u200d')).toBe('aU+200DbU+200D');
  expect(shown('\x1b[31m')).toBe('U+001B[31m');
  expect(shown('<img src=x>')).toBe('<img src=x>');
});

test('queries that continue a cache are the last tokens', () => {
  const found = labels(parts.runs[0], sites[0], 1);
  expect(found.keys).toEqual(['5', '6', '7', '8', '9']);
  expect(found.queries).toEqual(['7', '8', '9']);
});

test('sites by stack and kind', () => {
  const named = (name: string) => ({ name }) as SiteParts;
  const found = groups([
    named('encoder.0.self'),
    named('decoder.0.self'),
    named('decoder.0.cross'),
    named('decoder.1.self'),
  ]);
  expect(found.map((group) => [group.title, group.sites])).toEqual([
    ['encoder · self', [0]],
    ['decoder · self', [1, 3]],
    ['decoder · cross', [2]],
  ]);
  expect(layer('decoder.11.self')).toBe('11');
  expect(layer('mine')).toBe('mine');
});
