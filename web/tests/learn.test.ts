import { describe, expect, it } from 'vitest';
import { readPart, writePart } from '../src/bench/rooms/learn/course.svelte';
import { limits, scale } from '../src/bench/rooms/learn/axis';
import { tabulatePanel } from '../src/bench/rooms/learn/export';
import { written } from '../src/bench/rooms/learn/spread';
import { sampleChances } from '../src/bench/rooms/learn/choices';
import { learnMerges, writePiece } from '../src/bench/rooms/learn/merges';
import { countSteps, partOf, readPlan } from '../src/bench/rooms/learn/plans';
import { attendRow, writeNumbers, writeWeights } from '../src/bench/rooms/learn/numbers';
import { largestSize, sketchShape } from '../src/bench/rooms/learn/sheets';
import { breakLine, colourPython, indent, type Edit } from '../src/bench/rooms/learn/typing';

const edited = (text: string, { from, to, text: typed }: Edit) =>
  text.slice(0, from) + typed + text.slice(to);

describe('the editor', () => {
  it('indents to the next step, or the lines of a selection', () => {
    expect(edited('ab', indent('ab', 2, 2, false))).toBe('ab  ');
    expect(edited('ab', indent('ab', 0, 0, false))).toBe('    ab');
    const two = 'if x:\ny\n\nz';
    const edit = indent(two, 6, two.length, false);
    expect(edited(two, edit)).toBe('if x:\n    y\n\n    z');
    expect(edit.select).toEqual([10, 18]);
  });
  it('takes indentation back', () => {
    expect(edited('      a', indent('      a', 7, 7, true))).toBe('  a');
    expect(edited('a', indent('a', 1, 1, true))).toBe('a');
  });
  it('begins a line as the one before, deeper after a colon', () => {
    expect(edited('  a', breakLine('  a', 3, 3))).toBe('  a\n  ');
    expect(edited('def f(x):  # why', breakLine('def f(x):  # why', 16, 16))).toBe(
      'def f(x):  # why\n    ',
    );
  });
  it('colours Python and loses no sign of it', () => {
    const text = 'def f(x):\n    """a\n    b"""\n    return x + 1.5  # <b>\n    s = "open\n';
    const pieces = colourPython(text);
    expect(pieces.map(([, piece]) => piece).join('')).toBe(text);
    expect(pieces).toContainEqual(['keyword', 'return']);
    expect(pieces).toContainEqual(['string', '"""a\n    b"""']);
    expect(pieces).toContainEqual(['number', '1.5']);
    expect(pieces).toContainEqual(['comment', '# <b>']);
  });
});

describe('an axis', () => {
  it('has the limits of its numbers', () => {
    const free = { log: false, least: null, most: null };
    expect(limits(free, [3, 1])).toEqual([1, 3]);
    expect(limits({ ...free, least: 0 }, [0.5, 0.5])).toEqual([0, 0.5]);
    expect(limits({ ...free, log: true }, [0, 4])).toEqual([2, 8]);
  });
  it('places numbers and ticks', () => {
    const plain = scale(0, 1, false);
    expect(plain.at(0.25)).toBe(0.25);
    expect(plain.ticks).toEqual([0, 0.5, 1]);
    const log = scale(1, 1000, true);
    expect(log.at(10)).toBeCloseTo(1 / 3);
    expect(log.ticks).toEqual([1, 10, 100, 1000]);
    expect(scale(2, 5, true).ticks).toEqual([2, 5]);
  });
});

describe('one row of attention', () => {
  it('is that of the course', () => {
    const values = [
      [0.1, 0],
      [1, 0.2],
      [0.2, 1],
    ];
    const row = attendRow([12.5, 30.8, 25.1], 1 / 8, values);
    expect(writeWeights(row.weights)).toEqual(['0.06', '0.63', '0.31']);
    expect(writeNumbers(row.out)).toEqual(['0.70', '0.43']);
    expect(row.weights.reduce((sum, each) => sum + each, 0)).toBeCloseTo(1, 12);
  });
  it('is written as the course writes numbers', () => {
    expect(writeNumbers([12.5, 30.8, -Infinity])).toEqual(['12.5', '30.8', '−∞']);
    expect(writeNumbers([1, -2])).toEqual(['1', '−2']);
    expect(writeWeights([0.00001, 0.99999, 0])).toEqual(['<0.001', '1.000', '0']);
  });
});

describe('sampling', () => {
  const logits = [0.15, 0.5, 0.05, 0.2, 0.1].map(Math.log);
  const neutral = { temperature: 1, topK: 5, topP: 1, minP: 0 };
  const chances = (settings: Partial<typeof neutral>) =>
    sampleChances(logits, { ...neutral, ...settings }).map((each) => Number(each.toFixed(3)));
  it('leaves what is neither cooled nor cut', () => {
    expect(chances({})).toEqual([0.15, 0.5, 0.05, 0.2, 0.1]);
  });
  it('keeps what the library keeps', () => {
    expect(chances({ topK: 2 })).toEqual([0, 0.714, 0, 0.286, 0]);
    expect(chances({ topP: 0.8 })).toEqual([0.176, 0.588, 0, 0.235, 0]);
    expect(chances({ topP: 0.05 })).toEqual([0, 1, 0, 0, 0]);
    expect(chances({ minP: 0.25 })).toEqual([0.176, 0.588, 0, 0.235, 0]);
    expect(chances({ temperature: 0 })).toEqual([0, 1, 0, 0, 0]);
  });
  it('applies the temperature first', () => {
    expect(chances({ temperature: 0.5, minP: 0.25 })).toEqual([0, 1, 0, 0, 0]);
    expect(chances({ temperature: 2, minP: 0.25 }).every((each) => each > 0)).toBe(true);
  });
});

describe('merges', () => {
  const text = 'the cat sat on the mat and the other cat sat on that hat';
  const pieces = (words: string[][]) => words.flat().map(writePiece).join(' ');
  it('are those of the course', () => {
    const { merges, words } = learnMerges(text, 12);
    expect(merges.map(({ piece, count, left }) => [writePiece(piece), count, left])).toEqual([
      ['at', 7, 49],
      ['th', 5, 44],
      ['the', 4, 40],
      ['␣o', 3, 37],
      ['␣c', 2, 35],
      ['␣cat', 2, 33],
      ['␣s', 2, 31],
      ['␣sat', 2, 29],
      ['␣on', 2, 27],
      ['␣the', 2, 25],
    ]);
    expect(pieces(words)).toBe(
      'the ␣cat ␣sat ␣on ␣the ␣ m at ␣ a n d ␣the ␣o the r ␣cat ␣sat ␣on ␣ th at ␣ h at',
    );
  });
  it('begin with bytes and do not overlap', () => {
    expect(pieces(learnMerges('猫', 9).words)).toBe('E7 8C AB');
    expect(pieces(learnMerges('猫 猫', 9).words)).toBe('猫 ␣ 猫');
    expect(pieces(learnMerges('aaab aaab', 1).words)).toBe('aa a b ␣ aa a b');
    expect(learnMerges('', 3)).toEqual({ merges: [], words: [] });
  });
});

describe('a part of the course', () => {
  it('is read from the address, and the map where it names nothing', () => {
    for (const text of ['chapter:masks', 'questions', 'questions:why', 'lab:low-precision'])
      expect(writePart(readPart(text))).toBe(text);
    for (const text of ['', 'chapter', 'nowhere:x', 'map'])
      expect(readPart(text)).toEqual({ kind: 'map', name: '' });
  });
});

it('a mean of several runs is written with their range', () => {
  const series = { name: 'RoPE', values: [0.85, 1, null], low: [0.8, 1, null], high: [0.91, 1, null] };
  expect(written(series, 0, 3)).toBe('0.85 (0.8–0.91)');
  expect(written(series, 1, 3)).toBe('1');
  expect(written(series, 2, 3)).toBe('–');
  expect(written({ name: '', values: [0.5] }, 0, 3)).toBe('0.5');
  const axis = { label: 'length', log: false, least: null, most: null };
  const panel = { kind: 'lines' as const, title: '', x: axis, y: axis, places: [32, 64, 128], series: [series], marks: [] };
  expect(tabulatePanel(panel)).toEqual([
    ['length', 'RoPE', 'RoPE (min)', 'RoPE (max)'],
    [32, 0.85, 0.8, 0.91],
    [64, 1, 1, 1],
    [128, null, null, null],
  ]);
});

describe('plans', () => {
  const step = (minutes: number, done: boolean) => ({ minutes, done });
  it('are those that there are', () => {
    expect(['weekend', 'weeks', 'interview'].map(readPlan)).toEqual(['weekend', 'weeks', 'interview']);
    expect([readPlan(null), readPlan(''), readPlan('<b>')]).toEqual([null, null, null]);
  });
  it('lead to the parts of the room', () => {
    const about = { title: '', minutes: 1, done: false, command: '' };
    const at = (kind: 'practice' | 'quiz' | 'capstone', name: string) =>
      writePart(partOf({ ...about, kind, name }));
    expect(at('practice', 'rotary')).toBe('exercise:rotary');
    expect(at('quiz', 'masks')).toBe('questions:masks');
    expect(readPart(at('capstone', 'decoder'))).toEqual({ kind: 'capstone', name: 'decoder' });
  });
  it('count what is done and the minutes that are left', () => {
    expect(countSteps([step(5, true), step(7, false), step(11, false)])).toEqual({ done: 1, left: 18 });
    expect(countSteps([])).toEqual({ done: 0, left: 0 });
  });
});

describe('a tensor as sheets', () => {
  it('draws the last two sizes, and the others as sheets', () => {
    const largest = largestSize([[2, 5, 6], [2, 3, 5, 24]]);
    expect(largest).toBe(24);
    expect(sketchShape([2, 3, 6, 24], largest)).toEqual({ n: 4, width: 1, height: 0.5 });
    expect(sketchShape([2, 24, 6], largest)).toEqual({ n: 2, width: 0.5, height: 1 });
  });

  it('draws vectors and numbers, too', () => {
    expect(sketchShape([4], 4)).toEqual({ n: 1, width: 1, height: 0.5 });
    expect(sketchShape([], 1)).toEqual({ n: 1, width: 1, height: 1 });
  });
});
