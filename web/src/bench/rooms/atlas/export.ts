// The part of the map that is in sight: as a drawing with real text along its sides, as a table, and
// as what the Python lines are asked for.

import { colourOf } from '../../../view/colour';
import { FONT } from '../../../view/heat';
import type { Table } from '../../exports/files';
import { coloured, HEADING, MARGIN, tag, writeDocument } from '../../exports/paper';
import { listLabels, paintScene, valueAt, type Scene } from './paint';
import { HIDDEN } from './tile';
import { seen } from './view';

const FAMILY = FONT.replace('12px ', '');
const RAMP = 128; // pixels of the legend
const STEPS = 32; // of its colours
const SHARPNESS = 2; // pixels of the picture for each of the screen

export type Region = { level: number; rows: [number, number]; cols: [number, number] };

/** The blocks in sight, at the level that is shown. */
export function regionOf({ map, view, box, level }: Scene): Region {
  const { queries, keys } = map.extent;
  const block = 2 ** level;
  const blocks = ([from, to]: [number, number]): [number, number] => [
    Math.floor(from / block),
    Math.ceil(to / block),
  ];
  return {
    level,
    rows: blocks(seen(view.y, view.size, box.height, queries)),
    cols: blocks(seen(view.x, view.size, box.width, keys)),
  };
}

export type Seen = { row: number; col: number; value: number };

/** The largest values in sight, the largest first. */
export function findStrongest(scene: Scene, most: number): Seen[] {
  const { level, rows, cols } = regionOf(scene);
  const block = 2 ** level;
  const found: Seen[] = [];
  for (let row = rows[0]; row < rows[1]; row++) {
    for (let col = cols[0]; col < cols[1]; col++) {
      const value = valueAt(scene.map, level, { query: row * block, key: col * block })?.value ?? HIDDEN;
      if (!(value > 0) || (found.length === most && value <= found[most - 1].value)) continue;
      found.push({ row, col, value });
      found.sort((a, b) => b.value - a.value).splice(most);
    }
  }
  return found;
}

/** A row for each line of blocks, a column for each of theirs; empty where nothing is visible. */
export function tabulateRegion(scene: Scene): Table {
  const { map, labels } = scene;
  const { level, rows, cols } = regionOf(scene);
  const block = 2 ** level;
  const name = (axis: 'query' | 'key', n: number) => {
    const last = Math.min((n + 1) * block, axis === 'query' ? map.extent.queries : map.extent.keys) - 1;
    return level === 0 ? `${n} ${labels[axis].at(n)}`.trim() : `${n * block}–${last}`;
  };
  const along = ([from, to]: [number, number]) => Array.from({ length: to - from }, (_, i) => from + i);
  return [
    ['query', ...along(cols).map((col) => name('key', col))],
    ...along(rows).map((row) => [
      name('query', row),
      ...along(cols).map((col) => {
        const found = valueAt(map, level, { query: row * block, key: col * block });
        return found === null || found.value === HIDDEN ? null : found.value;
      }),
    ]),
  ];
}

export function drawRegion(scene: Scene, title: string, ends: [lowest: string, largest: string]): string {
  const { map, view, box, side, above, look } = scene;
  const width = Math.min(box.width, map.extent.keys * view.size);
  const height = Math.min(box.height, map.extent.queries * view.size);
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(width * SHARPNESS));
  canvas.height = Math.max(1, Math.round(height * SHARPNESS));
  const context = canvas.getContext('2d')!;
  context.setTransform(SHARPNESS, 0, 0, SHARPNESS, 0, 0);
  paintScene(context, { ...scene, side: 0, above: 0 });
  const [left, top] = [MARGIN + side, MARGIN + HEADING + above];
  const picture = tag('image', { x: left, y: top, width, height, href: canvas.toDataURL('image/png') });
  const frame = tag('rect', { x: left, y: top, width, height, fill: 'none', ...coloured('stroke', look.hatch) });
  const names = (['query', 'key'] as const).flatMap((axis) =>
    listLabels(context, scene, axis).map(({ text, x, y, isTurned, isPointed, anchor }) => {
      const [right, down] = [MARGIN + x, MARGIN + HEADING + y];
      const label = tag('text', {
        'font-size': 12,
        'font-family': FAMILY,
        'text-anchor': anchor,
        'dominant-baseline': 'central',
        ...coloured('fill', isPointed ? look.accent : look.quiet),
        ...(isTurned
          ? { transform: `translate(${right.toFixed(2)} ${down.toFixed(2)}) rotate(-90)` }
          : { x: right, y: down }),
      });
      label.textContent = text;
      return label;
    }),
  );
  const bottom = top + height + MARGIN;
  const right = Math.max(left + width + MARGIN, 520);
  const parts = [picture, frame, ...names, ...drawLegend(left, bottom, ends, look.quiet)];
  return writeDocument(Math.ceil(right), Math.ceil(bottom + 12 + MARGIN), title, parts);
}

/** The colours from the lowest weight to the largest. */
function drawLegend(x: number, y: number, ends: [string, string], ink: string): SVGElement[] {
  const label = (text: string, at: number, anchor: string) => {
    const found = tag('text', {
      x: at,
      y: y + 6,
      'text-anchor': anchor,
      'dominant-baseline': 'central',
      'font-size': 12,
      'font-family': FAMILY,
      ...coloured('fill', ink),
    });
    found.textContent = text;
    return found;
  };
  const from = x + 60;
  const steps = Array.from({ length: STEPS }, (_, n) => {
    const [red, green, blue] = colourOf(n / (STEPS - 1), false);
    const step = { x: from + (n * RAMP) / STEPS, y, width: RAMP / STEPS + 0.5, height: 12 };
    return tag('rect', { ...step, fill: `rgb(${red} ${green} ${blue})`.replaceAll(' ', ',') });
  });
  return [label(ends[0], from - 6, 'end'), ...steps, label(ends[1], from + RAMP + 6, 'start')];
}
