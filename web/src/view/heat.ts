// A heat map on a canvas: only what is in sight, with the tokens' names along its sides.

import type { Head } from '../trace/head';
import { isLight, viridis } from './colour';

export type Look = { ink: string; quiet: string; accent: string; panel: string; hidden: string };
export type CellPlace = { query: number; key: number };
export type Scene = {
  head: Head;
  picture: HTMLCanvasElement;
  queries: string[];
  keys: string[];
  width: number;
  height: number;
  side: number; // of the rows' names
  top: number; // of the columns' names
  size: number; // of a cell, in pixels
  left: number; // how far one has scrolled
  down: number;
  chosen: CellPlace;
  hovered: CellPlace | null;
  isRooted: boolean;
  look: Look;
};

export const FONT =
  '12px system-ui, "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';
const LEAST_NAME = 13; // pixels between names

/** One pixel for each weight, or its square root; nothing where the mask hides. */
export function picture(head: Head, isRooted: boolean): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  canvas.width = head.S;
  canvas.height = head.L;
  const context = canvas.getContext('2d')!;
  const image = context.createImageData(head.S, head.L);
  const { weights, largest, scoring } = head;
  const colours = Array.from({ length: 256 }, (_, i) => viridis(i / 255));
  for (let query = 0; query < head.L; query++) {
    for (let key = 0; key < head.S; key++) {
      if (!scoring.allows(query, key)) continue;
      const at = query * head.S + key;
      const colour = colours[Math.round(255 * share(weights[at], largest, isRooted)) || 0];
      image.data.set(colour, 4 * at);
      image.data[4 * at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Where a weight lies on the scale, from 0 to 1; roots let small weights be seen. */
export function share(weight: number, largest: number, isRooted: boolean): number {
  const linear = weight / (largest || 1);
  return isRooted ? Math.sqrt(linear) : linear;
}

export function nameWidth(names: string[], most: number): number {
  const context = document.createElement('canvas').getContext('2d')!;
  context.font = FONT;
  const widest = names.reduce((n, name) => Math.max(n, context.measureText(name).width), 0);
  return Math.ceil(Math.min(widest, most)) + 10;
}

export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, side, top, look } = scene;
  context.clearRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(side, top, width - side, height - top);
  context.clip();
  context.translate(side - scene.left, top - scene.down);
  paintCells(context, scene);
  context.restore();
  context.font = FONT;
  context.textBaseline = 'middle';
  context.fillStyle = look.ink;
  paintQueries(context, scene);
  paintKeys(context, scene);
}

function paintCells(context: CanvasRenderingContext2D, scene: Scene): void {
  const { head, size, look, chosen, hovered } = scene;
  const [right, bottom] = [head.S * size, head.L * size];
  context.fillStyle = look.hidden;
  context.fillRect(0, 0, right, bottom);
  context.imageSmoothingEnabled = size < 1;
  context.imageSmoothingQuality = 'high';
  context.drawImage(scene.picture, 0, 0, right, bottom);
  const rows = seen(scene.down, scene.height - scene.top, size, head.L);
  const columns = seen(scene.left, scene.width - scene.side, size, head.S);
  if (size >= 9) {
    context.fillStyle = look.panel;
    context.globalAlpha = 0.3;
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
  mark(chosen, look.panel, 5);
  mark(chosen, look.ink, 2);
}

function paintNumbers(
  context: CanvasRenderingContext2D,
  { head, size, isRooted }: Scene,
  rows: number[],
  columns: number[],
): void {
  context.font = `${size >= 44 ? 12 : 11}px system-ui, sans-serif`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (let q = rows[0]; q < rows[1]; q++) {
    for (let k = columns[0]; k < columns[1]; k++) {
      if (!head.scoring.allows(q, k)) continue;
      const weight = head.weight(q, k);
      context.fillStyle = isLight(share(weight, head.largest, isRooted)) ? '#1d2125' : '#ffffffd0';
      context.fillText(weight.toFixed(2).replace(/^0/, ''), (k + 0.5) * size, (q + 0.5) * size);
    }
  }
}

function paintQueries(context: CanvasRenderingContext2D, scene: Scene): void {
  const { size, side, top, down, height, head, look } = scene;
  context.save();
  context.beginPath();
  context.rect(0, top - 7, side, height - top + 7);
  context.clip();
  context.textAlign = 'right';
  for (const q of named(seen(down, height - top, size, head.L), size, pointed(scene, 'query'))) {
    context.fillStyle = colour(q, scene, 'query', look);
    const text = fitted(context, scene.queries[q], side - 10);
    context.fillText(text, side - 7, top + (q + 0.5) * size - down);
  }
  context.restore();
}

function paintKeys(context: CanvasRenderingContext2D, scene: Scene): void {
  const { size, side, top, left, width, head, look } = scene;
  context.save();
  context.beginPath();
  context.rect(side - 7, 0, width - side + 7, top);
  context.clip();
  context.textAlign = 'left';
  for (const k of named(seen(left, width - side, size, head.S), size, pointed(scene, 'key'))) {
    context.save();
    context.fillStyle = colour(k, scene, 'key', look);
    context.translate(side + (k + 0.5) * size - left, top - 6);
    context.rotate(-Math.PI / 2);
    context.fillText(fitted(context, scene.keys[k], top - 10), 0, 0);
    context.restore();
  }
  context.restore();
}

const pointed = ({ chosen, hovered }: Scene, which: 'query' | 'key'): number[] => [
  ...(hovered === null ? [] : [hovered[which]]),
  chosen[which],
];

function colour(n: number, { chosen, hovered }: Scene, which: 'query' | 'key', look: Look): string {
  return n === chosen[which] || n === hovered?.[which] ? look.accent : look.quiet;
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

function fitted(context: CanvasRenderingContext2D, text: string, most: number): string {
  if (context.measureText(text).width <= most) return text;
  const signs = Array.from(text);
  while (signs.length > 1 && context.measureText(`${signs.join('')}…`).width > most) signs.pop();
  return `${signs.join('')}…`;
}

/** The colours of the page, as the canvas needs them. */
export function lookOf(element: Element): Look {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of('ink'),
    quiet: of('quiet'),
    accent: of('accent'),
    panel: of('panel'),
    hidden: of('hidden'),
  };
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
