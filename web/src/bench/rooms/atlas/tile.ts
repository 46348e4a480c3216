// A tile: numbers as they arrive, and the picture that they make under the present colours.

import { bytes, float32 } from '../../../trace/numbers';
import type { TileAnswer } from './wire';

export const HIDDEN = -1; // instead of a weight: nothing may be attended to
export const DECADES = 3; // below the brightest colour, on a logarithmic scale
export type Scale = 'all' | 'row';
export type Curve = 'linear' | 'log';

export type Tile = {
  rows: number;
  cols: number;
  values: Float32Array;
  rowTops: Float32Array; // the largest value of each whole line at this level
  top: number;
  painted?: { with: string; image: OffscreenCanvas };
};

/** Colours of all shares from 0 to 1, and of what is not a number. */
export type Paint = {
  name: string; // differs where the colours do
  isDark: boolean;
  colours: Uint32Array; // 256, as a canvas stores them
  broken: number;
  scale: Scale;
  curve: Curve;
};

export function decodeTile(answer: TileAnswer): Tile {
  return {
    rows: answer.rows,
    cols: answer.cols,
    values: decodeNumbers(answer.values, answer.form),
    rowTops: decodeNumbers(answer.row_tops, 'float32'),
    top: answer.top,
  };
}

/** Numbers of an answer; a bfloat16 is the upper half of a float32. */
export function decodeNumbers(text: string, form: TileAnswer['form']): Float32Array {
  if (form === 'float32') return float32(text);
  const halves = new Uint16Array(bytes(text).buffer);
  return new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
}

/** Where a value lies between 0 and the brightest colour. */
export function shareOf(value: number, top: number, curve: Curve): number {
  if (!(value > 0)) return 0;
  if (!(top > 0)) return 1;
  const share = curve === 'linear' ? value / top : 1 + Math.log10(value / top) / DECADES;
  return Math.min(1, Math.max(0, share));
}

/** The colour of each cell; 0, which is transparent, where it is hidden. */
export function colourCells(tile: Tile, top: number, paint: Paint): Uint32Array {
  const { rows, cols, values, rowTops } = tile;
  const pixels = new Uint32Array(rows * cols);
  for (let row = 0, i = 0; row < rows; row++) {
    const own = paint.scale === 'row' ? rowTops[row] : top;
    for (let col = 0; col < cols; col++, i++) {
      const value = values[i];
      if (value === HIDDEN) continue;
      pixels[i] = Number.isNaN(value)
        ? paint.broken
        : paint.colours[Math.round(255 * shareOf(value, own, paint.curve))];
    }
  }
  return pixels;
}

/** The picture of a tile, one pixel for each block; painted once for the same colours. */
export function imageOf(tile: Tile, top: number, paint: Paint): OffscreenCanvas | null {
  if (tile.rows === 0 || tile.cols === 0) return null;
  const name = `${paint.name} ${paint.scale === 'row' ? '' : top}`;
  if (tile.painted?.with !== name) {
    const image = new OffscreenCanvas(tile.cols, tile.rows);
    const pixels = new Uint8ClampedArray(colourCells(tile, top, paint).buffer as ArrayBuffer);
    image.getContext('2d')!.putImageData(new ImageData(pixels, tile.cols, tile.rows), 0, 0);
    tile.painted = { with: name, image };
  }
  return tile.painted.image;
}
