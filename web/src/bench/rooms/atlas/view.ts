// The arithmetic of the view: which part of the matrix is in sight, how large, and in which tiles.

export type Extent = { queries: number; keys: number };
export type Box = { width: number; height: number }; // of the picture, in CSS pixels
/** The cell in the middle of the picture (fractions of cells count), and the pixels of a cell. */
export type View = { x: number; y: number; size: number };
export type TileName = { level: number; row: number; col: number };
export type Span = [from: number, to: number]; // of cells, `to` not included

export const MOST_SIZE = 56; // pixels of a cell: numbers are readable
const LEAST_BLOCK = 0.75; // device pixels: finer blocks would be dropped by the screen

/** The size at which the whole matrix is in sight. */
export function fitSize({ queries, keys }: Extent, { width, height }: Box): number {
  return Math.min(width / keys, height / queries, MOST_SIZE);
}

export function fitView(extent: Extent, box: Box): View {
  return clampView({ x: 0, y: 0, size: fitSize(extent, box) }, extent, box);
}

/** The nearest view that shows as much of the matrix as it can; a small one begins at the names. */
export function clampView(view: View, extent: Extent, box: Box): View {
  const size = Math.min(MOST_SIZE, Math.max(view.size, fitSize(extent, box)));
  const within = (centre: number, length: number, pixels: number) => {
    const half = pixels / size / 2;
    return 2 * half >= length ? half : Math.min(Math.max(centre, half), length - half);
  };
  return {
    x: within(view.x, extent.keys, box.width),
    y: within(view.y, extent.queries, box.height),
    size,
  };
}

/** Zoom so that what lies under a pixel of the picture stays there. */
export function zoomAt(view: View, by: number, px: number, py: number, extent: Extent, box: Box): View {
  const size = Math.min(MOST_SIZE, Math.max(view.size * by, fitSize(extent, box)));
  const keep = (centre: number, pixel: number, length: number) =>
    centre + (pixel - length / 2) * (1 / view.size - 1 / size);
  const moved = { x: keep(view.x, px, box.width), y: keep(view.y, py, box.height), size };
  return clampView(moved, extent, box);
}

/** The cells along one side that are in sight, of n. */
export function seen(centre: number, size: number, pixels: number, n: number): Span {
  const half = pixels / size / 2;
  return [Math.max(0, Math.floor(centre - half)), Math.min(n, Math.ceil(centre + half))];
}

/** The finest level whose blocks the screen can show. */
export function levelOf(size: number, ratio: number, top: number): number {
  const level = Math.ceil(Math.log2(LEAST_BLOCK / (size * ratio)));
  return Math.min(Math.max(level, 0), top);
}

/** The tiles of a level that are in sight, those in the middle first. */
export function tilesIn(view: View, extent: Extent, box: Box, level: number, tile: number): TileName[] {
  const cells = tile * 2 ** level;
  const across = seen(view.x, view.size, box.width, extent.keys);
  const down = seen(view.y, view.size, box.height, extent.queries);
  const found: (TileName & { far: number })[] = [];
  for (let row = Math.floor(down[0] / cells); row * cells < down[1]; row++) {
    for (let col = Math.floor(across[0] / cells); col * cells < across[1]; col++) {
      const far = Math.hypot((row + 0.5) * cells - view.y, (col + 0.5) * cells - view.x);
      found.push({ level, row, col, far });
    }
  }
  return found.sort((a, b) => a.far - b.far).map(({ row, col }) => ({ level, row, col }));
}

export type Cell = { query: number; key: number };

/** The cell under a pixel of the picture; null beside the matrix. */
export function cellAt(view: View, extent: Extent, box: Box, px: number, py: number): Cell | null {
  const key = Math.floor(view.x + (px - box.width / 2) / view.size);
  const query = Math.floor(view.y + (py - box.height / 2) / view.size);
  const isInside = key >= 0 && key < extent.keys && query >= 0 && query < extent.queries;
  return isInside ? { query, key } : null;
}

/** The pixel at which a cell begins. */
export const pixelOf = (view: View, box: Box, { query, key }: Cell): [x: number, y: number] => [
  (key - view.x) * view.size + box.width / 2,
  (query - view.y) * view.size + box.height / 2,
];

/** Move as little as possible so that a cell is in sight, a little away from the edge. */
export function reveal(view: View, extent: Extent, box: Box, { query, key }: Cell): View {
  const into = (centre: number, place: number, pixels: number) => {
    const half = pixels / view.size / 2;
    const edge = Math.min(half / 4, 40 / view.size + 1);
    if (place + 1 > centre + half - edge) return place + 1 - half + edge;
    return place < centre - half + edge ? place + half - edge : centre;
  };
  const moved = { ...view, x: into(view.x, key, box.width), y: into(view.y, query, box.height) };
  return clampView(moved, extent, box);
}

/** A view as a part of the address, and back; null if it is none. */
export const writeView = ({ x, y, size }: View): string =>
  [x.toFixed(1), y.toFixed(1), Number(size.toPrecision(5))].join('_');

export function readView(text: string): View | null {
  const [x, y, size, ...more] = text.split('_').map(Number);
  const isView = more.length === 0 && [x, y, size].every(Number.isFinite) && size > 0;
  return isView ? { x, y, size } : null;
}

/** Round distances between the numbers along an axis, so that they do not touch. */
export function tickStep(size: number, room: number): number {
  const least = room / size;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least) ?? 10 * power;
}

/** The places of a block along one axis, as they are written: 4, or 4–7. */
export function writeSpan(start: number, level: number, most: number): string {
  const from = (start >> level) << level;
  const to = Math.min(from + 2 ** level, most) - 1;
  return from === to ? String(from) : `${from}–${to}`;
}
