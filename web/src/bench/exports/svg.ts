// A drawing of the page inside the exported one: its shapes, with the colours that styles gave them.

import { plainColour, reach, readable, tag, type Pen } from './paper';

const SHAPES = new Set('svg g path rect circle ellipse line polyline polygon text tspan image'.split(' '));
const PLACES =
  'x y x1 y1 x2 y2 cx cy r rx ry dx dy d points width height viewBox preserveAspectRatio transform href'.split(' ');
const LOOKS = [
  'fill-opacity',
  'fill',
  'stroke-opacity',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'stroke-linecap',
  'stroke-linejoin',
  'opacity',
];
const LETTERS = ['font-family', 'font-size', 'font-weight', 'text-anchor', 'dominant-baseline'];
const USUAL: Record<string, string> = {
  'fill-opacity': '1',
  'stroke-opacity': '1',
  'stroke-width': '1px',
  'stroke-dasharray': 'none',
  'stroke-linecap': 'butt',
  'stroke-linejoin': 'miter',
  opacity: '1',
  stroke: 'none',
  'font-weight': '400',
  'text-anchor': 'start',
  'dominant-baseline': 'auto',
};

export function drawSvg(source: SVGSVGElement, into: SVGElement, pen: Pen): void {
  const box = source.getBoundingClientRect();
  if (box.width === 0 || box.height === 0) return;
  const { x, y, width, height } = box;
  const copy = tag('svg', { x, y, width, height });
  const viewBox = source.getAttribute('viewBox');
  if (viewBox !== null) copy.setAttribute('viewBox', viewBox);
  const fit = source.getAttribute('preserveAspectRatio');
  if (fit !== null) copy.setAttribute('preserveAspectRatio', fit);
  if (getComputedStyle(source).overflow === 'visible') copy.setAttribute('overflow', 'visible');
  for (const child of source.children) copyShape(child, copy);
  into.append(copy);
  reach(pen, box);
}

function copyShape(shape: Element, into: SVGElement): void {
  const name = shape.tagName.toLowerCase();
  if (!SHAPES.has(name)) return;
  const style = getComputedStyle(shape);
  if (style.display === 'none' || style.visibility === 'hidden') return;
  const copy = tag(name, {});
  for (const place of PLACES) {
    const value = shape.getAttribute(place);
    if (value !== null && (place !== 'href' || value.startsWith('data:image/'))) copy.setAttribute(place, value);
  }
  const isText = name === 'text' || name === 'tspan';
  // Of groups only what their children do not inherit in the copy.
  const looks = name === 'g' || name === 'svg' ? ['opacity'] : isText ? [...LOOKS, ...LETTERS] : LOOKS;
  for (const look of looks) {
    const value = style.getPropertyValue(look);
    if (value === '' || value === USUAL[look]) continue;
    const isColour = (look === 'fill' || look === 'stroke') && value !== 'none';
    copy.setAttribute(look, isColour ? plainColour(value).hex : value);
    if (isColour && plainColour(value).alpha < 1) thin(copy, look, plainColour(value).alpha, style);
  }
  for (const child of shape.childNodes) {
    if (child instanceof Element) copyShape(child, copy);
    else if (isText) copy.append(readable(child.textContent ?? ''));
  }
  into.append(copy);
}

/** A colour that lets the paper through, beside what the shape itself lets through. */
function thin(copy: SVGElement, look: string, alpha: number, style: CSSStyleDeclaration): void {
  const own = parseFloat(style.getPropertyValue(`${look}-opacity`)) || 0;
  copy.setAttribute(`${look}-opacity`, String(alpha * own));
}
