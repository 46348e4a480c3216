import { describe, expect, test, vi } from 'vitest';
import { paintOf } from '../src/bench/rooms/atlas/colours';
import { colourCells, decodeNumbers, shareOf, type Paint } from '../src/bench/rooms/atlas/tile';
import { Tiles } from '../src/bench/rooms/atlas/tiles';
import {
  cellAt,
  clampView,
  fitView,
  levelOf,
  MOST_SIZE,
  pixelOf,
  readView,
  reveal,
  seen,
  tickStep,
  tilesIn,
  writeSpan,
  writeView,
  zoomAt,
  type TileName,
} from '../src/bench/rooms/atlas/view';
import type { TileAnswer } from '../src/bench/rooms/atlas/wire';

const EXTENT = { queries: 16_384, keys: 16_384 };
const BOX = { width: 820, height: 410 };

describe('the view', () => {
  test('fits the whole matrix, and small ones begin beside their names', () => {
    const view = fitView(EXTENT, BOX);
    expect(view.size).toBeCloseTo(410 / 16_384);
    expect(pixelOf(view, BOX, { query: 0, key: 0 })).toEqual([0, 0]);
    expect(fitView({ queries: 6, keys: 6 }, BOX).size).toBe(MOST_SIZE);
  });

  test('the places of a block are written from its first to its last', () => {
    expect([writeSpan(5, 0, 9), writeSpan(5, 2, 9), writeSpan(8, 2, 9)]).toEqual(['5', '4–7', '8']);
  });

  test('zooming keeps what lies under the pointer', () => {
    const view = { x: 5000, y: 9000, size: 0.5 };
    const zoomed = zoomAt(view, 8, 700, 100, EXTENT, BOX);
    expect(zoomed.size).toBe(4);
    expect(cellAt(zoomed, EXTENT, BOX, 700, 100)).toEqual(cellAt(view, EXTENT, BOX, 700, 100));
    expect(zoomAt(view, 1e9, 0, 0, EXTENT, BOX).size).toBe(MOST_SIZE);
    expect(zoomAt(view, 0, 0, 0, EXTENT, BOX)).toEqual(fitView(EXTENT, BOX));
  });

  test('never leaves the matrix', () => {
    const view = clampView({ x: -100, y: 1e9, size: 2 }, EXTENT, BOX);
    expect(pixelOf(view, BOX, { query: 16_384, key: 0 })).toEqual([0, 410]);
    expect(cellAt(view, EXTENT, BOX, 0, 409)).toEqual({ query: 16_383, key: 0 });
  });

  test('a pixel beside the matrix is no cell', () => {
    const view = fitView({ queries: 6, keys: 6 }, BOX);
    expect(cellAt(view, { queries: 6, keys: 6 }, BOX, 6 * 56 - 1, 0)).toEqual({ query: 0, key: 5 });
    expect(cellAt(view, { queries: 6, keys: 6 }, BOX, 6 * 56 + 1, 0)).toBeNull();
  });

  test('reveals a cell by the smallest move', () => {
    const view = { x: 5000, y: 5000, size: 10 };
    expect(reveal(view, EXTENT, BOX, { query: 5000, key: 5000 })).toEqual(view);
    const moved = reveal(view, EXTENT, BOX, { query: 5000, key: 5100 });
    expect(moved.y).toBe(5000);
    expect(seen(moved.x, 10, BOX.width, 16_384)[1]).toBeGreaterThan(5100);
  });

  test('is read back from the address', () => {
    expect(readView(writeView({ x: 1234.54, y: 7, size: 0.0123456 }))).toEqual({
      x: 1234.5,
      y: 7,
      size: 0.012346,
    });
    for (const wrong of ['', '1_2', '1_2_0', '1_2_x', '1_2_3_4', '1_2_-3']) {
      expect(readView(wrong)).toBeNull();
    }
  });
});

describe('levels and tiles', () => {
  test('a block is never much smaller than a pixel of the screen', () => {
    expect(levelOf(1, 1, 6)).toBe(0);
    expect(levelOf(0.5, 1, 6)).toBe(1);
    expect(levelOf(0.5, 2, 6)).toBe(0);
    expect(levelOf(410 / 16_384, 1, 6)).toBe(5);
    expect(levelOf(1e-5, 1, 6)).toBe(6);
  });

  test('tiles in sight cover the view, the middle first', () => {
    const view = { x: 600, y: 600, size: 1 };
    const tiles = tilesIn(view, EXTENT, BOX, 0, 256);
    expect(tiles[0]).toEqual({ level: 0, row: 2, col: 2 });
    expect(new Set(tiles.map(({ row, col }) => `${row} ${col}`)).size).toBe(tiles.length);
    expect(tiles.map(({ col }) => col)).toContain(0); // 190 … 1010
    expect(Math.max(...tiles.map(({ col }) => col))).toBe(3);
    expect(tilesIn(fitView(EXTENT, BOX), EXTENT, BOX, 6, 256)).toEqual([{ level: 6, row: 0, col: 0 }]);
  });

  test('numbers along the axes are round and do not touch', () => {
    expect(tickStep(1, 60)).toBe(100);
    expect(tickStep(0.025, 60)).toBe(5000);
    expect(tickStep(100, 60)).toBe(1);
  });
});

const packed = (values: number[]) =>
  btoa(String.fromCharCode(...new Uint8Array(new Float32Array(values).buffer)));
const answer = (values: number[]): TileAnswer => ({
  rows: 1,
  cols: values.length,
  form: 'float32',
  values: packed(values),
  row_tops: packed([Math.max(...values)]),
  top: 0.5,
});

describe('numbers become colours', () => {
  test('a bfloat16 is the upper half of a float32', () => {
    const text = btoa(String.fromCharCode(0x80, 0x3f, 0x80, 0xbf, 0x00, 0x00));
    expect([...decodeNumbers(text, 'bfloat16')]).toEqual([1, -1, 0]);
    expect([...decodeNumbers(packed([0.25, -1]), 'float32')]).toEqual([0.25, -1]);
  });

  test('shares of a linear and a logarithmic scale', () => {
    expect(shareOf(0.25, 0.5, 'linear')).toBe(0.5);
    expect(shareOf(2, 0.5, 'linear')).toBe(1);
    expect(shareOf(0.05, 0.5, 'log')).toBeCloseTo(2 / 3);
    expect(shareOf(1e-9, 0.5, 'log')).toBe(0);
    expect(shareOf(0, 0.5, 'log')).toBe(0);
  });

  test('hidden cells are transparent, weight 0 is paper, NaN has a colour of its own', () => {
    const colours = Uint32Array.from({ length: 256 }, (_, i) => i + 1);
    const paint: Paint = {
      name: '',
      isDark: false,
      colours,
      broken: 999,
      scale: 'all',
      curve: 'linear',
    };
    const tile = {
      rows: 2,
      cols: 2,
      values: Float32Array.from([-1, 0, 0.5, NaN]),
      rowTops: Float32Array.from([0, 0.5]),
      top: 1,
    };
    expect([...colourCells(tile, 1, paint)]).toEqual([0, 1, 129, 999]);
    expect(colourCells(tile, 1, { ...paint, scale: 'row' })[2]).toBe(256);
  });

  test('weight 0 is paper, and all of it is ink', () => {
    const bytes = new Uint8Array(paintOf(false, 'row', 'log').colours.buffer);
    expect([...bytes.subarray(0, 4)]).toEqual([255, 255, 255, 255]);
    expect([...bytes.subarray(-4)]).toEqual([3, 48, 49, 255]);
    expect(paintOf(true, 'row', 'log').name).not.toBe(paintOf(false, 'row', 'log').name);
  });
});

describe('tiles on their way', () => {
  const name = (col: number): TileName => ({ level: 0, row: 0, col });
  function waiting() {
    const asked: { col: number; signal: AbortSignal; done: (answer: TileAnswer) => void }[] = [];
    const faults: unknown[] = [];
    const tiles = new Tiles(
      ({ col }, signal) =>
        new Promise((done, fail) => {
          asked.push({ col, signal, done });
          signal.addEventListener('abort', () => fail(new DOMException('', 'AbortError')));
        }),
      vi.fn(),
      (error) => faults.push(error),
    );
    return { asked, faults, tiles };
  }

  test('few are asked for at once, in order; those out of sight are given up', async () => {
    const { asked, faults, tiles } = waiting();
    tiles.want([0, 1, 2, 3, 4].map(name));
    expect(asked.map(({ col }) => col)).toEqual([0, 1, 2]);
    asked[0].done(answer([0.5]));
    await vi.waitFor(() => expect(asked.map(({ col }) => col)).toEqual([0, 1, 2, 3]));
    expect(tiles.get(name(0))!.values[0]).toBe(0.5);
    expect(tiles.missing).toBe(4);
    tiles.want([name(9)]);
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([false, true, true, true]);
    await vi.waitFor(() => expect(asked.at(-1)!.col).toBe(9));
    expect(faults).toEqual([]);
  });

  test('what is known is not asked for again, and the oldest is forgotten', () => {
    const { asked, tiles } = waiting();
    const tile = { rows: 0, cols: 0, values: new Float32Array(), rowTops: new Float32Array(), top: 0 };
    for (let col = 0; col < 240; col++) tiles.add(name(col), tile);
    expect(tiles.get(name(0))).toBeDefined(); // now it is the newest
    tiles.add(name(240), tile);
    expect(tiles.get(name(1))).toBeUndefined();
    tiles.want([name(0), name(240)]);
    expect(asked).toEqual([]);
  });
});
