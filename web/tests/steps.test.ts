// The room Steps against the library: rows, edits, the way back, and mistakes by hand.

import { describe, expect, test } from 'vitest';
import { erf } from '../src/bench/rooms/steps/algebra';
import { computeBack, jacobian, WAY_BACK } from '../src/bench/rooms/steps/backward';
import { nameRow, ofRow, readEdits, readNumber, withEdit, writeEdits } from '../src/bench/rooms/steps/edits';
import { explain, explainBack } from '../src/bench/rooms/steps/explain';
import { compute, decode, decodeMatrices, type Chain } from '../src/bench/rooms/steps/forward';
import { isNear, judge, mistakesAt, mistakesBack } from '../src/bench/rooms/steps/mistakes';
import { MISTAKES, STEPS } from '../src/bench/rooms/steps/texts';
import type { FeedForwardAnswer, StepsAnswer } from '../src/bench/rooms/steps/wire';
import file from './steps.json';

type Numbers = (number | null)[];
type Case = {
  answer: StepsAnswer;
  matrices: FeedForwardAnswer;
  row: Record<string, Numbers>;
  edits: { edits: string; expected: Record<string, Numbers> }[];
  gradients: Record<string, number[]>;
};
const CASES = Object.entries(file as unknown as Record<string, Case>);
const NONE = readEdits('');

function expectClose(got: ArrayLike<number>, expected: Numbers, digits = 9) {
  expect(got.length).toBe(expected.length);
  Array.from(got).forEach((each, i) => {
    if (expected[i] === null) expect(each).toBe(-Infinity);
    else expect(each).toBeCloseTo(expected[i], digits);
  });
}
const at = (chain: Chain, id: string) => chain.stages.get(id)!.values;

describe.each(CASES)('%s', (_, { answer, matrices, row, edits, gradients }) => {
  const given = decode(answer);
  const both = decodeMatrices(matrices);

  test('the row is the library’s', () => {
    const chain = compute(given, NONE);
    expectClose(at(chain, 'dots'), row.dots);
    expectClose(chain.scores, row.scores);
    expectClose(at(chain, 'weights'), row.weights);
    expectClose(at(chain, 'sum'), row.out);
    const ids = answer.steps.map(({ id }) => id);
    expect(ids.filter((id) => !chain.stages.has(id))).toEqual([]);
  });

  test.each(edits)('$edits changes everything below', ({ edits: text, expected }) => {
    const name = text.startsWith('q.') ? text.replace('q.', `${lastOfQ(answer)}.`) : text;
    const chain = compute(given, readEdits(name), both);
    // rotary tables are float32, which the recorded q and k share, so nothing else is off
    expectClose(at(chain, 'weights'), expected.weights, 6);
    expectClose(at(chain, 'sum'), expected.sum, 6);
    const last = answer.steps[answer.steps.length - 1].id;
    const ends: Record<string, string> = { output: 'output', ff_down: 'ff_down', end: last };
    for (const [id, stage] of Object.entries(ends)) {
      if (id in expected) expectClose(at(chain, stage), expected[id], 6);
    }
    expect([...chain.stages.values()].some(({ isHeld }) => isHeld)).toBe(false);
  });

  test('without the matrices, the feed-forward is held', () => {
    const chain = compute(given, readEdits('x.0=5'), null);
    expect(chain.stages.get('ff_up')!.isHeld).toBe(true);
    expect(chain.stages.get('residual')!.isHeld).toBe(false);
  });

  test('the way back is autograd’s', () => {
    const chain = compute(given, NONE);
    const back = computeBack(given, chain, Float64Array.from(gradients.out));
    for (const name of ['values', 'weights', 'scores', 'dots', 'q', 'keys'] as const) {
      expectClose(back[name], gradients[name]);
    }
    const weights = at(chain, 'weights');
    const all = Array.from({ length: given.S ** 2 }, (_, n) =>
      jacobian(weights, Math.floor(n / given.S), n % given.S),
    );
    expectClose(all, gradients.jacobian);
  });

  test('products of operands add up to the result', () => {
    const chain = compute(given, NONE, both);
    for (const id of ['dots', 'sum']) {
      const { columns } = explain(given, chain, id, 1, both);
      const sum = columns[2].reduce((a, b) => a + b, 0);
      expect(sum).toBeCloseTo(at(chain, id)[1], 9);
    }
    for (const { id } of answer.steps) expect(() => explain(given, chain, id, 0, both)).not.toThrow();
    const back = computeBack(given, chain, Float64Array.from(gradients.out));
    const { columns } = explainBack(given, chain, back, 'd_scores', 2);
    expect(columns[2].reduce((a, b) => a + b, 0)).toBeCloseTo(back.scores[2], 9);
  });

  test('every mistake is told from the truth, and has its sentence', () => {
    const chain = compute(given, NONE, both);
    const back = computeBack(given, chain, Float64Array.from(gradients.out));
    const lists = [
      ...answer.steps.map(({ id }) => [at(chain, id)[1], mistakesAt(given, chain, id, 1)] as const),
      ...(['d_values', 'd_weights', 'jacobian', 'd_scores', 'd_dots', 'd_q', 'd_keys'] as const).map(
        (id) => {
          const truth = {
            d_values: back.values, d_weights: back.weights, d_scores: back.scores, d_dots: back.dots,
            d_q: back.q, d_keys: back.keys, jacobian: [0, jacobian(at(chain, 'weights'), 0, 1)],
          }[id][1]; // prettier-ignore
          return [truth, mistakesBack(given, chain, back, id, 1)] as const;
        },
      ),
    ];
    let named = 0;
    for (const [truth, known] of lists) {
      expect(judge(String(truth), truth, truth, known)).toEqual({ isRight: true, mistake: null });
      for (const [name, wrong] of known) {
        expect(MISTAKES).toHaveProperty(name);
        if (Number.isNaN(wrong) || isNear('', wrong, truth)) continue;
        expect(judge('', wrong, truth, known).mistake).not.toBeNull();
        named++;
      }
    }
    expect(named).toBeGreaterThan(20);
  });
});

/** The step whose result is q. */
function lastOfQ(answer: StepsAnswer): string {
  const ids = answer.steps.map(({ id }) => id);
  return ['rotate', 'head_norm', 'project'].find((id) => ids.includes(id))!;
}

test('mistakes of softmax are named', () => {
  const { answer } = CASES[0][1];
  const given = decode(answer);
  const chain = compute(given, NONE);
  const known = Object.fromEntries(mistakesAt(given, chain, 'weights', 1));
  const truth = at(chain, 'weights')[1];
  for (const name of ['wrong_axis', 'mask_forgotten', 'scale_forgotten', 'not_divided']) {
    const found = judge(String(known[name]), known[name], truth, mistakesAt(given, chain, 'weights', 1));
    expect(found).toEqual({ isRight: false, mistake: name });
  }
  const hidden = answer.allowed.indexOf(false);
  expect(judge('0', 0, -Infinity, mistakesAt(given, chain, 'mask', hidden)).mistake).toBe('masked_with_zero');
});

test('every step has its words', () => {
  const ids = [...CASES.flatMap(([, { answer }]) => answer.steps.map(({ id }) => id)), ...WAY_BACK];
  for (const id of ids) expect(STEPS).toHaveProperty(id);
});

test('a number typed with two decimals is right to two decimals', () => {
  expect(isNear('0.33', 0.33, 1 / 3)).toBe(true);
  expect(isNear('0.32', 0.32, 1 / 3)).toBe(false);
  expect(isNear('0', 0, 0.3)).toBe(false);
  expect(isNear('-inf', -Infinity, -Infinity)).toBe(true);
  expect(isNear('0', 0, -Infinity)).toBe(false);
});

test('edits survive the address; what is none is left out', () => {
  const edits = withEdit(readEdits('dots.3=1.5;x.0=-2;nonsense;y.1=z'), 'weights', 2, 1e-7);
  expect(writeEdits(readEdits(writeEdits(edits)!))).toBe('dots.3=1.5;x.0=-2;weights.2=1e-7');
  expect(writeEdits(withEdit(readEdits('x.0=1'), 'x', 0, null))).toBeNull();
  expect(readEdits('mask.1=-Infinity').get('mask')!.get(1)).toBe(-Infinity);
  expect([readNumber('−1,5'), readNumber('-∞'), readNumber('1e3'), readNumber('a')]).toEqual([-1.5, -Infinity, 1000, null]);
});

test('erf is exact on both sides of its seam', () => {
  expect(erf(0.5)).toBeCloseTo(0.5204998778130465, 14);
  expect(erf(2.4)).toBeCloseTo(0.9993114861033549, 14);
  expect(erf(2.6)).toBeCloseTo(0.9997639655834707, 14);
  expect(erf(-3)).toBeCloseTo(-0.9999779095030014, 14);
});

test('edits belong to one row', () => {
  expect(nameRow('a')).not.toBe(nameRow('b'));
  expect(ofRow('k3', 'k3:x.0=1')).toBe('x.0=1');
  expect(ofRow('k3', 'k4:x.0=1')).toBe('');
});
