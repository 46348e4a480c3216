// Everything the browser computes, against numbers that Python wrote (tests/render/page_numbers.py).

import { describe, expect, test } from 'vitest';
import { arithmetic } from '../src/trace/arithmetic';
import { Store } from '../src/engine/store';
import { strongest, type Head } from '../src/trace/head';
import { written } from '../src/trace/masks';
import { bytes, float32 } from '../src/trace/numbers';
import { HIDDEN, sharpness, summarise, type Summary } from '../src/trace/summary';
import { groups, labels, layer, shown } from '../src/trace/texts';
import type { PageParts, SiteParts } from '../src/trace/wire';
import file from './numbers.json';

type Numbers = number[] | Numbers[];
const parts = file.page as unknown as PageParts;
const expected = file.sites as unknown as Record<
  string,
  Record<string, Numbers & Record<string, unknown>>
>;
const source = new Store(parts);
source.addTensors(JSON.stringify(file.tensors));
file.packed.forEach((packed, n) => source.addSite(0, n, JSON.stringify(packed)));
const sites = parts.runs[0].sites;
const [B, H, L, S] = sites[0].shape;

function everyHead(visit: (head: Head, sequence: number, number: number) => void, site: number) {
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < H; h++) visit(source.head({ run: 0, site, sequence: b, head: h }), b, h);
  }
}

/** All at once, as the engine does it between its other work. */
function summary(head: Head, step = 1): Summary {
  const steps = summarise(head, step);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
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
      const found = summary(head).weights.map((weight) => (weight === HIDDEN ? 0 : weight));
      expect(worst(found, wanted)).toBeLessThan(1e-6);
      for (let q = 0; q < L; q++) {
        expect(worst(head.weights(q), wanted.slice(q * S, (q + 1) * S))).toBeLessThan(1e-6);
      }
    }, number);
  });

  test('statistics', () => {
    everyHead((head, b, h) => {
      const { statistics, weights } = summary(head);
      for (const which of ['visible', 'entropy', 'peak', 'distance', 'received'] as const) {
        const wanted = (expected[name][which] as number[][][])[b][h];
        expect(worst(statistics[which], wanted)).toBeLessThan(1e-6);
      }
      const seen = weights.filter((weight) => weight !== HIDDEN).length;
      expect(seen).toBe(statistics.visible.reduce((a, b) => a + b, 0));
      const sharp = (expected[name].sharpness as number[][])[b][h];
      if (sharp === null) expect(sharpness(statistics)).toBeNaN();
      else expect(sharpness(statistics)).toBeCloseTo(sharp, 5);
    }, number);
  });

  test('some queries are those of all', () => {
    everyHead((head) => {
      const all = summary(head);
      for (const step of [2, 3, L]) {
        const some = summary(head, step);
        expect(some.weights.length).toBe(Math.ceil(L / step) * S);
        for (let row = 0; row * step < L; row++) {
          const query = row * step;
          expect(some.statistics.entropy[row]).toBeCloseTo(all.statistics.entropy[query], 12);
          expect(some.weights.subarray(row * S, (row + 1) * S)).toEqual(
            all.weights.subarray(query * S, (query + 1) * S),
          );
        }
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

test('strongest keys', () => {
  expect(strongest([0.1, 0.6, 0, 0.3], 2)).toEqual([1, 3]);
  expect(strongest([0, 0], 2)).toEqual([]);
  expect(strongest([0.2, 0.4, 0.2, 0.2, NaN], 3)).toEqual([1, 0, 2]);
});

test('the page shows the sharpness that Python measured', () => {
  sites.forEach(({ name, sharpness: shown }) => {
    const wanted = (expected[name].sharpness as number[][]).flat();
    shown!.flat().forEach((value, i) => {
      if (value === null) expect(wanted[i]).toBeNull();
      else expect(value).toBeCloseTo(wanted[i], 4);
    });
  });
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
  expect(found.rows).toEqual(['7', '8', '9']); // without a mask, nothing is predicted
  expect(labels(parts.runs[0], sites[0], 1)).toBe(found);
});

test('rows that predict are named by what they read and what comes next', () => {
  const causal = sites.find(({ name }) => name === 'causal')!;
  const found = labels(parts.runs[0], causal, 1);
  expect(found.next).toEqual(['8', '9', null]);
  expect(found.rows.map((row) => row.replace(/[\u2068\u2069]/g, ''))).toEqual([
    '7 → 8',
    '8 → 9',
    '9',
  ]);
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
