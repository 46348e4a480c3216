// A heat map on a canvas: only what is in sight, with the tokens' names along its sides.

import type { Head } from '../trace/head';
import { share, type Settings } from '../trace/picture';
import { inkOn } from './colour';

export type Look = {
  ink: string;
  quiet: string;
  accent: string;
  panel: string;
  hidden: string;
  hatch: string;
};
export type CellPlace = { query: number; key: number };
/** A number in its cell, and the ink that is readable there. */
export type Written = { text: string; ink: string };
/** A matrix as an image, a pixel for each block of cells. */
export type Picture = {
  L: number;
  S: number;
  image: CanvasImageSource & { width: number; height: number };
  factor: number; // cells along the side of a block
  leavesFirst: boolean; // the first key is left out
  writer: (query: number) => (key: number) => Written | null; // null: nobody may attend here
};
export type Scene = Picture & {
  rows: string[];
  keys: string[];
  width: number;
  height: number;
  side: number; // room of the rows' names
  above: number; // room of the columns' names
  size: number; // of a cell, in pixels
  left: number; // how far one has scrolled
  down: number;
  chosen: CellPlace | null;
  hovered: CellPlace | null;
  look: Look;
};

/** The picture of a head, whose cells tell their weights. */
export function weightPicture({ head, image, settings, top }: Weights): Picture {
  const { factor, leavesFirst, isRooted, isDark } = settings;
  const first = leavesFirst ? 1 : 0;
  const writer = (query: number) => {
    const weights = head.weights(query);
    const own = settings.scale === 'row' ? Math.max(...weights.subarray(first)) : top;
    return (key: number): Written | null =>
      head.sees(query, key)
        ? {
            text: weights[key].toFixed(2).replace(/^0/, ''),
            ink: inkOn(share(weights[key], own, isRooted), isDark),
          }
        : null;
  };
  return { L: head.L, S: head.S, image, factor, leavesFirst, writer };
}
type Weights = { head: Head; image: ImageBitmap; settings: Settings; top: number };

export const FONT =
  '12px system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';
export const MOST_SIZE = 52; // pixels of a cell
const LEAST_NAME = 13; // pixels between names
const FEW = 200; // names that are measured
const HATCH = 7; // pixels between hatches

const widths = new WeakMap<string[], number>();

/** Room for names, at most so much. */
export function nameWidth(names: string[], most: number): number {
  const widest = widths.get(names) ?? widestOf(names);
  widths.set(names, widest);
  return Math.ceil(Math.min(widest, most)) + 10;
}

/** Of thousands of names, the longest texts are measured. */
function widestOf(names: string[]): number {
  const context = document.createElement('canvas').getContext('2d')!;
  context.font = FONT;
  const longest = names.length <= FEW ? names : [...names].sort((a, b) => b.length - a.length);
  const some = longest.slice(0, FEW);
  return some.reduce((n, name) => Math.max(n, context.measureText(name).width), 0);
}

export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, side, above, look } = scene;
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(side, above, width - side, height - above);
  context.clip();
  context.translate(side - scene.left, above - scene.down);
  paintCells(context, scene);
  context.restore();
  context.font = FONT;
  context.textBaseline = 'middle';
  context.fillStyle = look.ink;
  paintQueries(context, scene);
  paintKeys(context, scene);
}

function paintCells(context: CanvasRenderingContext2D, scene: Scene): void {
  const { L, S, size, look, chosen, hovered } = scene;
  const [right, bottom] = [S * size, L * size];
  context.fillStyle = hatched(context, look);
  context.fillRect(0, 0, right, bottom);
  if (scene.leavesFirst) {
    context.fillStyle = look.panel; // left out, and not hidden by a mask
    context.fillRect(0, 0, size, bottom);
  }
  // A pixel of the image is never smaller than one of the screen: nothing is smoothed away.
  context.imageSmoothingEnabled = false;
  const block = size * scene.factor;
  context.drawImage(scene.image, 0, 0, scene.image.width * block, scene.image.height * block);
  const rows = seen(scene.down, scene.height - scene.above, size, L);
  const columns = seen(scene.left, scene.width - scene.side, size, S);
  if (size >= 9) {
    context.fillStyle = look.quiet; // seen on paper and on ink
    context.globalAlpha = 0.22;
    for (let q = rows[0]; q <= rows[1]; q++) context.fillRect(0, q * size - 0.5, right, 1);
    for (let k = columns[0]; k <= columns[1]; k++) context.fillRect(k * size - 0.5, 0, 1, bottom);
    context.globalAlpha = 1;
  }
  if (size >= 34) paintNumbers(context, scene, rows, columns);
  const mark = (cell: CellPlace, colour: string, line: number) => {
    context.strokeStyle = colour;
    context.lineWidth = line;
    const [x, y, w] = [cell.key * size, cell.query * size, Math.max(size, 3)];
    context.strokeRect(x, y, w, w);
  };
  if (hovered !== null) mark(hovered, look.quiet, 1.5);
  if (chosen === null) return;
  mark(chosen, look.panel, 5);
  mark(chosen, look.ink, 2);
}

/** What nobody may attend to: hatched, so that it is not taken for a small weight. */
export function hatched(context: CanvasRenderingContext2D, look: Look): CanvasPattern | string {
  const tile = document.createElement('canvas');
  tile.width = tile.height = HATCH;
  const pen = tile.getContext('2d')!;
  pen.fillStyle = look.hidden;
  pen.fillRect(0, 0, HATCH, HATCH);
  pen.strokeStyle = look.hatch;
  pen.beginPath();
  for (const from of [-HATCH, 0, HATCH]) {
    pen.moveTo(from - 1, HATCH + 1);
    pen.lineTo(from + HATCH + 1, -1);
  }
  pen.stroke();
  return context.createPattern(tile, 'repeat') ?? look.hidden;
}

function paintNumbers(
  context: CanvasRenderingContext2D,
  { size, leavesFirst, writer }: Scene,
  rows: number[],
  columns: number[],
): void {
  context.font = `${size >= 44 ? 12 : 11}px system-ui, sans-serif`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (let q = rows[0]; q < rows[1]; q++) {
    const write = writer(q);
    for (let k = Math.max(leavesFirst ? 1 : 0, columns[0]); k < columns[1]; k++) {
      const written = write(k);
      if (written === null) continue;
      context.fillStyle = written.ink;
      context.fillText(written.text, (k + 0.5) * size, (q + 0.5) * size);
    }
  }
}

function paintQueries(context: CanvasRenderingContext2D, scene: Scene): void {
  const { size, side, above, down, height, L, look } = scene;
  context.save();
  context.beginPath();
  context.rect(0, above - 7, side, height - above + 7);
  context.clip();
  context.textAlign = 'right';
  for (const q of named(seen(down, height - above, size, L), size, pointed(scene, 'query'))) {
    context.fillStyle = colour(q, scene, 'query', look);
    const text = fitted(context, scene.rows[q], side - 10);
    context.fillText(text, side - 7, above + (q + 0.5) * size - down);
  }
  context.restore();
}

function paintKeys(context: CanvasRenderingContext2D, scene: Scene): void {
  const { size, side, above, left, width, S, look } = scene;
  context.save();
  context.beginPath();
  context.rect(side - 7, 0, width - side + 7, above);
  context.clip();
  context.textAlign = 'left';
  for (const k of named(seen(left, width - side, size, S), size, pointed(scene, 'key'))) {
    context.save();
    context.fillStyle = colour(k, scene, 'key', look);
    context.translate(side + (k + 0.5) * size - left, above - 6);
    context.rotate(-Math.PI / 2);
    context.fillText(fitted(context, scene.keys[k], above - 10), 0, 0);
    context.restore();
  }
  context.restore();
}

const pointed = ({ chosen, hovered }: Scene, which: 'query' | 'key'): number[] => [
  ...(hovered === null ? [] : [hovered[which]]),
  ...(chosen === null ? [] : [chosen[which]]),
];

function colour(n: number, { chosen, hovered }: Scene, which: 'query' | 'key', look: Look): string {
  return n === chosen?.[which] || n === hovered?.[which] ? look.accent : look.quiet;
}

/** The first and one past the last cell in sight. */
function seen(from: number, length: number, size: number, n: number): [number, number] {
  return [Math.max(0, Math.floor(from / size)), Math.min(n, Math.ceil((from + length) / size))];
}

/** Which places get a name: those pointed at, and of the others as many as have room. */
export function named([from, to]: [number, number], size: number, first: number[]): number[] {
  const step = Math.max(1, Math.ceil(LEAST_NAME / size));
  const shown = first.filter((n, i) => n >= from && n < to && first.indexOf(n) === i);
  const room = (n: number) => shown.every((m) => Math.abs(n - m) * size >= LEAST_NAME || n === m);
  const kept = shown.filter((n, i) => i === 0 || Math.abs(n - shown[0]) * size >= LEAST_NAME);
  for (let n = Math.ceil(from / step) * step; n < to; n += step) {
    if (!kept.includes(n) && room(n)) kept.push(n);
  }
  return kept;
}

export function fitted(context: CanvasRenderingContext2D, text: string, most: number): string {
  if (context.measureText(text).width <= most) return text;
  const signs = Array.from(text);
  while (signs.length > 1 && context.measureText(`${signs.join('')}…`).width > most) signs.pop();
  return `${signs.join('')}…`;
}

/** The colours of the page, as the canvas needs them; system colours become plain ones. */
export function lookOf(element: Element): Look {
  const probe = element.parentElement!.appendChild(document.createElement('span'));
  probe.style.setProperty('forced-color-adjust', 'none');
  const of = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const look = {
    ink: of('ink'),
    quiet: of('quiet'),
    accent: of('accent'),
    panel: of('panel'),
    hidden: of('hidden'),
    hatch: of('hatch'),
  };
  probe.remove();
  return look;
}

/** A canvas made as sharp as the screen, and its context in CSS pixels. */
export function sharp(canvas: HTMLCanvasElement, width: number, height: number) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext('2d')!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
