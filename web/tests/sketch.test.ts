// Sketches of heads of long texts: asked for once, kept, given up when nobody waits for them.

import { expect, test } from 'vitest';
import { Sketches, type Sketch } from '../src/bench/rooms/look/sketch';

type Asked = { site: string; head: number; signal: AbortSignal; answer: () => void };

function make(most?: number) {
  const asked: Asked[] = [];
  const sketches = new Sketches(
    (site, head, signal) =>
      new Promise<Sketch>((done, fail) => {
        signal.addEventListener('abort', () => fail(new DOMException('', 'AbortError')));
        asked.push({ site, head, signal, answer: () => done({ site, head } as Sketch) });
      }),
    most,
  );
  return { asked, sketches };
}

test('a sketch is asked for once, however many wait for it', async () => {
  const { asked, sketches } = make();
  const both = [sketches.fetch('a', 1), sketches.fetch('a', 1)];
  expect(sketches.recall('a', 1)).toBeNull();
  asked[0].answer();
  expect(await Promise.all(both)).toEqual([{ site: 'a', head: 1 }, { site: 'a', head: 1 }]);
  expect(sketches.recall('a', 1)).toEqual({ site: 'a', head: 1 });
  expect(await sketches.fetch('a', 1)).toBe(sketches.recall('a', 1));
  expect(asked.length).toBe(1);
});

test('what nobody waits for is given up, and may be asked for again', async () => {
  const { asked, sketches } = make();
  const given = [sketches.fetch('a', 1), sketches.fetch('b', 2)].map((each) =>
    each.catch((error: Error) => error.name),
  );
  const kept = sketches.fetch('a', 2);
  sketches.keepOnly('a', [2, 3]);
  expect(await Promise.all(given)).toEqual(['AbortError', 'AbortError']);
  expect(asked.map(({ signal }) => signal.aborted)).toEqual([true, true, false]);
  asked[2].answer();
  expect((await kept).head).toBe(2);
  void sketches.fetch('a', 1);
  expect(asked.length).toBe(4);
});

test('the oldest sketches are forgotten', async () => {
  const { asked, sketches } = make(2);
  for (const head of [0, 1, 2]) {
    const found = sketches.fetch('a', head);
    asked[head].answer();
    await found;
  }
  expect([0, 1, 2].map((head) => sketches.recall('a', head)?.head ?? null)).toEqual([null, 1, 2]);
});
