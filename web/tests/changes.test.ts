// Interventions as switches see them: term by term, and back to text.

import { expect, test } from 'vitest';
import { find, put, readTerms, remove, swap, writeTerms } from '../src/bench/rooms/touch/changes';

const TEXT = 'swap(decoder.1.self, mask=Causal() & Window(left=4), scale=0.5) & skip(decoder.5)';

test('a text is read into terms and written as it was', () => {
  expect(readTerms(TEXT)).toEqual([
    {
      kind: 'swap',
      place: 'decoder.1.self',
      options: { mask: 'Causal() & Window(left=4)', scale: '0.5' },
    },
    { kind: 'skip', place: 'decoder.5', options: {} },
  ]);
  expect(writeTerms(readTerms(TEXT))).toBe(TEXT);
  expect(readTerms(null)).toEqual([]);
  expect(writeTerms([])).toBeNull();
});

test('what is not understood stays as it was typed', () => {
  const text = 'explode(now) & ablate(decoder.1.self, head=2';
  expect(writeTerms(readTerms(text))).toBe(text);
  expect(put(text, { kind: 'skip', place: 'decoder.3' })).toBe(`${text} & skip(decoder.3)`);
});

test('a switch finds its own term and no other', () => {
  const text = 'ablate(decoder.1.self) & ablate(decoder.1.self, head=2, how=mean)';
  const head = { kind: 'ablate', place: 'decoder.1.self', options: { head: '2' } };
  const whole = { ...head, options: { head: undefined } };
  expect(find(text, head)).toEqual({ head: '2', how: 'mean' });
  expect(find(text, whole)).toEqual({});
  expect(find(text, { ...head, options: { head: '3' } })).toBeNull();
  expect(remove(text, whole)).toBe('ablate(decoder.1.self, head=2, how=mean)');
  expect(put(text, head)).toBe('ablate(decoder.1.self) & ablate(decoder.1.self, head=2)');
  expect(remove(remove(text, whole), head)).toBeNull();
});

test('a place has one swap, whose options come and go', () => {
  let text = swap(null, 'decoder.1.self', { scale: '0.1' });
  expect(text).toBe('swap(decoder.1.self, scale=0.1)');
  text = swap(text, 'decoder.1.self', { mask: 'none', bias: null });
  expect(text).toBe('swap(decoder.1.self, scale=0.1, mask=none)');
  text = swap(text, 'decoder.1.self', { scale: null });
  expect(text).toBe('swap(decoder.1.self, mask=none)');
  expect(swap(text, 'decoder.1.self', { mask: null })).toBeNull();
});
