// What the engine computes of a head, in which order, and what becomes of numbers that are none.

import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Desk } from '../src/engine/desk';
import type { Asked, Look } from '../src/engine/messages';
import { Head } from '../src/trace/head';
import type { Allows } from '../src/trace/masks';
import type { Settings } from '../src/trace/picture';
import { HIDDEN, summarise, type Summary } from '../src/trace/summary';
import type { PageParts, SiteOperands } from '../src/trace/wire';

const SETTINGS: Settings = {
  scale: 'largest',
  isRooted: false,
  isDark: false,
  pool: 'max',
  leavesFirst: false,
  factor: 1,
};

beforeAll(() => {
  vi.stubGlobal('ImageData', class {});
  vi.stubGlobal('createImageBitmap', async () => ({ width: 0, height: 0 }));
});
afterAll(() => vi.unstubAllGlobals());

const base64 = (values: ArrayBufferView): string =>
  Buffer.from(values.buffer as ArrayBuffer).toString('base64');

/** A page with one site of one head of `n` tokens. */
function desk(n: number, width: number, answer: (look: Look) => void): Desk {
  const rows = {
    int16: base64(Int16Array.from({ length: n * width }, (_, i) => ((i * 37) % 101) - 50)),
    steps: base64(new Float32Array(n).fill(0.02)),
  };
  const site = {
    name: 'site',
    shape: [1, 1, n, n],
    n_kv_heads: 1,
    head_dim: width,
    value_dim: width,
    heads: [0],
    mask: { kind: 'Causal', offset: null },
    bias: null,
    scale: 0.1,
    softcap: null,
    query_positions: 0,
  };
  const page = { runs: [{ sites: [site] }] } as unknown as PageParts;
  const made = new Desk(page, 1000, answer);
  made.take({ kind: 'tensors', text: '[]' });
  const operands: SiteOperands = { q: rows, k: rows, v: rows, difference: null } as never;
  made.take({ kind: 'site', run: 0, site: 0, text: JSON.stringify(operands) });
  return made;
}

async function looks(n: number, asked: Asked, times = 1): Promise<Look[]> {
  const found: Look[] = [];
  const at = desk(n, 64, (look) => found.push(look));
  const choice = { run: 0, site: 0, sequence: 0, head: 0 };
  for (let id = 1; id <= times; id++) {
    at.take({ kind: 'look', id, choice, settings: SETTINGS, asked });
    await vi.waitFor(() => expect(found.at(-1)).toMatchObject({ id, step: 1 }), { timeout: 20_000 });
  }
  return found;
}

test('of a large head some queries are answered first, its operands once', async () => {
  const [part, whole] = await looks(1024, { mayBePart: true });
  expect([part.step, whole.step]).toEqual([8, 1]);
  expect([part.operands === null, whole.operands === null]).toEqual([false, true]);
  expect(part.statistics.peak.length).toBe(128);
  expect(part.statistics.peak).toEqual(whole.statistics.peak.filter((_, query) => query % 8 === 0));
});

test('a small head, a known one and one of which all is asked for come at once', async () => {
  expect((await looks(512, { mayBePart: true })).map(({ step }) => step)).toEqual([1]);
  const all = await looks(1024, { hasWeights: true });
  expect(all.map(({ step, weights }) => [step, weights!.length])).toEqual([[1, 1024 * 1024]]);
  const again = await looks(1024, { mayBePart: true }, 2);
  expect(again.map(({ id, step }) => [id, step])).toEqual([[1, 8], [1, 1], [2, 1]]);
  expect(again[2].operands).not.toBeNull();
});

function summaryOf(rows: number[][], allows: Allows): Summary {
  const matrix = (values: number[][]) => ({
    values: Float32Array.from(values.flat()),
    rows: values.length,
    width: values[0].length,
    steps: new Float32Array(values.length),
  });
  const keys = matrix([[1, 0], [0, 1], [1, 1], [2, 0], [0, 2]]);
  const scoring = { allows, adds: null, scale: 1, softcap: null };
  const head = new Head(matrix(rows), keys, keys, scoring, rows.map((_, query) => query));
  const steps = summarise(head);
  for (;;) {
    const step = steps.next();
    if (!step.done) continue;
    // A row by itself is computed in another way.
    rows.forEach((_, query) =>
      head.weights(query).forEach((weight, key) => {
        const found = step.value.weights[query * 5 + key];
        if (!allows(query, key)) expect(found).toBe(HIDDEN);
        else if (Number.isNaN(weight)) expect(found).toBeNaN();
        else expect(found).toBeCloseTo(weight, 6);
      }),
    );
    return step.value;
  }
}

test('nothing allowed gives zeros, what is not a number stays so, in its own row alone', () => {
  const rows = [[1, 2], [NaN, 1], [0, 0], [Infinity, 1], [3, -1], [500, -500], [-1, 0]];
  const { weights, statistics } = summaryOf(rows, (query, key) => query !== 2 && key !== 1);
  expect(Array.from(weights.subarray(10, 15))).toEqual([HIDDEN, HIDDEN, HIDDEN, HIDDEN, HIDDEN]);
  expect([statistics.visible[2], statistics.entropy[2], statistics.peak[2]]).toEqual([0, 0, 0]);
  expect(weights[5]).toBeNaN();
  expect(statistics.entropy[5]).toBeCloseTo(0, 12);
  expect(Array.from(statistics.visible)).toEqual([4, 4, 0, 4, 4, 4, 4]);
});
