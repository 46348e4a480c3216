// The picture: tiles from coarse to fine, then grid, numbers, marks, and names along the sides.

import { inkOn } from '../../../view/colour';
import { fitted, FONT, hatched, named, type Look } from '../../../view/heat';
import type { HeadMap } from './headmap.svelte';
import type { Labels } from './labels';
import { HIDDEN, imageOf, shareOf, type Paint, type Tile } from './tile';
import { pixelOf, seen, tickStep, tilesIn, type Box, type Cell, type View } from './view';

export type Scene = {
  map: HeadMap;
  view: View;
  box: Box; // of the picture, without its sides
  side: number; // room of the queries' names
  above: number; // room of the keys' names
  level: number;
  labels: { query: Labels; key: Labels };
  paint: Paint;
  look: Look;
  chosen: Cell | null;
  hovered: Cell | null;
};

const NUMBERS = 34; // pixels of a cell in which a number fits
const GRID = 9;
export const NAMES = 8; // pixels of a cell from which on tokens are named
const TICK = 64; // pixels between numbers of positions

export function paintScene(context: CanvasRenderingContext2D, scene: Scene): void {
  const { box, side, above } = scene;
  context.clearRect(0, 0, box.width + side, box.height + above);
  context.save();
  context.beginPath();
  context.rect(side, above, box.width, box.height);
  context.clip();
  context.translate(side, above);
  paintGround(context, scene);
  paintTiles(context, scene);
  if (scene.view.size >= GRID) paintGrid(context, scene);
  if (scene.view.size >= NUMBERS) paintNumbers(context, scene);
  paintMarks(context, scene);
  context.restore();
  context.font = FONT;
  context.textBaseline = 'middle';
  paintSide(context, scene, 'query');
  paintSide(context, scene, 'key');
}

/** Hatched where masks hide cells; plain where nothing is known yet. */
function paintGround(context: CanvasRenderingContext2D, { map, view, box, look }: Scene): void {
  const { queries, keys } = map.extent;
  const [x, y] = pixelOf(view, box, { query: 0, key: 0 });
  context.fillStyle = look.hidden;
  context.fillRect(x, y, keys * view.size, queries * view.size);
  context.fillStyle = hatched(context, look);
  context.fillRect(x, y, keys * view.size, map.surveyed * view.size);
}

function paintTiles(context: CanvasRenderingContext2D, scene: Scene): void {
  const { map, view, box, level, paint, look } = scene;
  const { opened, overview } = map;
  if (opened === null) return;
  context.imageSmoothingEnabled = false;
  const { top_level: top, tile: side } = opened;
  const ground = hatched(context, look);
  const draw = (tile: Tile, at: number, row: number, col: number, rows = tile.rows) => {
    const image = imageOf(tile, map.topOf(at, tile), paint);
    if (image === null || rows === 0) return;
    const block = 2 ** at;
    const [query, key] = [row * side * block, col * side * block];
    const [x, y] = pixelOf(view, box, { query, key });
    // The last block may reach beyond the matrix.
    const width = Math.min(tile.cols * block, opened.keys - key);
    const height = Math.min(rows * block, opened.queries - query);
    const [across, down] = [width / block, height / block];
    // Finer tiles replace coarser ones, also where they are transparent.
    context.fillStyle = ground;
    context.fillRect(x, y, width * view.size, height * view.size);
    context.drawImage(image, 0, 0, across, down, x, y, width * view.size, height * view.size);
  };
  if (overview !== null) draw(overview, top, 0, 0, Math.ceil(map.surveyed / 2 ** top));
  for (let at = top - 1; at >= level; at--) {
    for (const name of tilesIn(view, map.extent, box, at, side)) {
      const tile = map.tileAt(name);
      if (tile !== undefined) draw(tile, at, name.row, name.col);
    }
  }
}

function paintGrid(context: CanvasRenderingContext2D, scene: Scene): void {
  const { map, view, box, look } = scene;
  const { queries, keys } = map.extent;
  const [rows, cols] = spans(scene);
  const [left, top] = pixelOf(view, box, { query: rows[0], key: cols[0] });
  const [right, bottom] = pixelOf(view, box, {
    query: Math.min(rows[1], queries),
    key: Math.min(cols[1], keys),
  });
  context.fillStyle = look.hatch;
  context.globalAlpha = 0.35;
  for (let q = rows[0]; q <= rows[1]; q++) {
    context.fillRect(left, top + (q - rows[0]) * view.size - 0.5, right - left, 1);
  }
  for (let k = cols[0]; k <= cols[1]; k++) {
    context.fillRect(left + (k - cols[0]) * view.size - 0.5, top, 1, bottom - top);
  }
  context.globalAlpha = 1;
}

function paintNumbers(context: CanvasRenderingContext2D, scene: Scene): void {
  const { map, view, box, paint } = scene;
  const [rows, cols] = spans(scene);
  context.font = `${view.size >= 44 ? 12 : 11}px system-ui, sans-serif`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (let query = rows[0]; query < rows[1]; query++) {
    for (let key = cols[0]; key < cols[1]; key++) {
      const found = valueAt(map, 0, { query, key });
      if (found === null || found.value === HIDDEN) continue;
      const share = shareOf(found.value, paint.scale === 'row' ? found.rowTop : found.top, paint.curve);
      context.fillStyle = inkOn(share, paint.isDark);
      const [x, y] = pixelOf(view, box, { query, key });
      const text = found.value.toFixed(2).replace(/^0\./, '.');
      context.fillText(text, x + view.size / 2, y + view.size / 2);
    }
  }
}

export type Found = { value: number; rowTop: number; top: number };

/** What is known of the block of a level in which a cell lies; null where it is not fetched. */
export function valueAt(map: HeadMap, level: number, { query, key }: Cell): Found | null {
  const { opened } = map;
  if (opened === null) return null;
  const [line, column] = [query >> level, key >> level]; // up to a million: 32 bits are enough
  const [row, col] = [Math.floor(line / opened.tile), Math.floor(column / opened.tile)];
  const tile = map.tileAt({ level, row, col });
  if (tile === undefined) return null;
  const [down, right] = [line - row * opened.tile, column - col * opened.tile];
  return {
    value: tile.values[down * tile.cols + right],
    rowTop: tile.rowTops[down],
    top: map.topOf(level, tile),
  };
}

function paintMarks(context: CanvasRenderingContext2D, scene: Scene): void {
  const { view, box, look, chosen, hovered, level } = scene;
  const mark = (cell: Cell, colour: string, line: number, block: number) => {
    const at = { query: cell.query - (cell.query % block), key: cell.key - (cell.key % block) };
    const [x, y] = pixelOf(view, box, at);
    const length = Math.max(view.size * block, 5);
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.strokeRect(x, y, length, length);
  };
  if (hovered !== null) mark(hovered, look.quiet, 1.5, 2 ** level);
  if (chosen === null) return;
  if (view.size < GRID) {
    // Hairlines lead to a cell that is too small to see.
    const [x, y] = pixelOf(view, box, chosen);
    const [left, top] = pixelOf(view, box, { query: 0, key: 0 });
    const { queries, keys } = scene.map.extent;
    context.fillStyle = look.accent;
    context.globalAlpha = 0.5;
    context.fillRect(x + view.size / 2 - 0.5, top, 1, queries * view.size);
    context.fillRect(left, y + view.size / 2 - 0.5, keys * view.size, 1);
    context.globalAlpha = 1;
  }
  mark(chosen, look.panel, 5, 1);
  mark(chosen, look.ink, 2, 1);
}

function spans({ map, view, box }: Scene): [number[], number[]] {
  const { queries, keys } = map.extent;
  return [
    seen(view.y, view.size, box.height, queries),
    seen(view.x, view.size, box.width, keys),
  ];
}

export type Label = {
  text: string;
  x: number;
  y: number;
  anchor: 'start' | 'middle' | 'end';
  isTurned: boolean; // by a quarter, so that it reads upwards
  isPointed: boolean;
};

/** What is written along a side: tokens where they fit, numbers of positions where they do not. */
export function listLabels(
  context: CanvasRenderingContext2D,
  scene: Scene,
  axis: 'query' | 'key',
): Label[] {
  const { map, view, box, side, above, labels } = scene;
  const isDown = axis === 'query';
  const n = isDown ? map.extent.queries : map.extent.keys;
  const [from, to] = seen(isDown ? view.y : view.x, view.size, isDown ? box.height : box.width, n);
  const pointed = [scene.hovered, scene.chosen].flatMap((cell) => (cell === null ? [] : [cell[axis]]));
  const hasNames = view.size >= NAMES;
  const step = hasNames ? 1 : tickStep(view.size, isDown ? 28 : TICK);
  const ticks = Array.from(
    { length: Math.max(0, Math.ceil(to / step) - Math.ceil(from / step)) },
    (_, i) => (Math.ceil(from / step) + i) * step,
  );
  const places = hasNames ? named([from, to], view.size, pointed) : ticks;
  context.font = FONT;
  return places.map((place): Label => {
    const text = hasNames ? labels[axis].at(place) : place.toLocaleString('en');
    const [x, y] = pixelOf(view, box, { query: place, key: place });
    const middle = (isDown ? y : x) + view.size / 2;
    const common = { isPointed: pointed.includes(place), isTurned: !isDown && hasNames };
    if (isDown) {
      const fit = fitted(context, text, side - 12);
      return { ...common, text: fit, x: side - 7, y: above + middle, anchor: 'end' };
    }
    const fit = hasNames ? fitted(context, text, above - 10) : text;
    const y0 = above - (hasNames ? 6 : 10);
    return { ...common, text: fit, x: side + middle, y: y0, anchor: hasNames ? 'start' : 'middle' };
  });
}

const ALIGN = { start: 'left', middle: 'center', end: 'right' } as const;

function paintSide(context: CanvasRenderingContext2D, scene: Scene, axis: 'query' | 'key'): void {
  const { box, side, above, look } = scene;
  context.save();
  context.beginPath();
  if (axis === 'query') context.rect(0, above - 7, side, box.height + 7);
  else context.rect(side - 7, 0, box.width + 7, above);
  context.clip();
  for (const { text, x, y, anchor, isTurned, isPointed } of listLabels(context, scene, axis)) {
    context.fillStyle = isPointed ? look.accent : look.quiet;
    context.textAlign = ALIGN[anchor];
    context.save();
    context.translate(x, y);
    if (isTurned) context.rotate(-Math.PI / 2);
    context.fillText(text, 0, 0);
    context.restore();
  }
  context.restore();
}
