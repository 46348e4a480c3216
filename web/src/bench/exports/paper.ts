// The paper that views are drawn on: elements of an SVG document, how far they reach, its title.

export type Pen = { left: number; top: number; right: number; bottom: number };

const SVG = 'http://www.w3.org/2000/svg';
export const MARGIN = 18;
export const HEADING = 26; // pixels of the title
const LETTER = 7.6; // and of one of its letters, about

export function tag(name: string, attributes: Record<string, string | number>): SVGElement {
  const element = document.createElementNS(SVG, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, typeof value === 'number' ? String(Number(value.toFixed(3))) : value);
  }
  return element;
}

const known = new Map<string, { hex: string; alpha: number }>();
let pixel: CanvasRenderingContext2D | undefined;

/** A colour as every program reads it, whatever the style sheet calls it. */
export function plainColour(colour: string): { hex: string; alpha: number } {
  let found = known.get(colour);
  if (found === undefined) {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    pixel ??= canvas.getContext('2d', { willReadFrequently: true })!;
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
    const hex = `#${[red, green, blue].map((n) => n.toString(16).padStart(2, '0')).join('')}`;
    known.set(colour, (found = { hex, alpha: alpha / 255 }));
  }
  return found;
}

/** The attributes of a colour: what it paints, and how thickly. */
export function coloured(what: 'fill' | 'stroke', colour: string): Record<string, string | number> {
  if (colour === 'none') return { [what]: 'none' };
  const { hex, alpha } = plainColour(colour);
  return { [what]: hex, ...(alpha < 1 ? { [`${what}-opacity`]: alpha } : {}) };
}

/** The drawing is at least so large. */
export function reach(pen: Pen, { left, top, right, bottom }: DOMRect): void {
  pen.left = Math.min(pen.left, left);
  pen.top = Math.min(pen.top, top);
  pen.right = Math.max(pen.right, right);
  pen.bottom = Math.max(pen.bottom, bottom);
}

/** What XML can hold: tokens may be parts of characters, or signs that are none. */
export const readable = (text: string): string =>
  text
    .replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g, '\uFFFD')
    .replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, '\uFFFD');

/** A document on white paper, its title in words above what is drawn. */
export function writeDocument(width: number, height: number, title: string, parts: SVGElement[]): string {
  const svg = tag('svg', { width, height, viewBox: `0 0 ${width} ${height}` });
  const name = tag('title', {});
  const heading = tag('text', {
    x: MARGIN,
    y: MARGIN + 8,
    fill: '#1d2125',
    'font-size': 14,
    'font-weight': 600,
    'font-family': "system-ui, 'Noto Sans', 'Noto Sans CJK SC', sans-serif",
  });
  const signs = Array.from(readable(title).replace(/\s+/g, ' '));
  const most = Math.max(8, Math.floor((width - 2 * MARGIN) / LETTER));
  name.textContent = signs.join('');
  heading.textContent = signs.length > most ? `${signs.slice(0, most - 1).join('')}…` : signs.join('');
  svg.append(name, tag('rect', { width, height, fill: '#ffffff' }), heading, ...parts);
  return new XMLSerializer().serializeToString(svg);
}
