// The texts of the page as texts of the drawing, line by line where the page broke them.

import { coloured, reach, readable, tag, type Pen } from './paper';

type Line = { text: string; box: DOMRect };

const rulers = new Map<string, { ascent: number; descent: number }>();
const context = () => document.createElement('canvas').getContext('2d')!;

/** How far letters reach above their line and below it. */
function measure(font: string): { ascent: number; descent: number } {
  let found = rulers.get(font);
  if (found === undefined) {
    const pen = context();
    pen.font = font;
    const { fontBoundingBoxAscent: ascent, fontBoundingBoxDescent: descent } = pen.measureText('x');
    rulers.set(font, (found = { ascent, descent }));
  }
  return found;
}

export function drawText(node: Text, into: SVGElement, pen: Pen): void {
  const parent = node.parentElement;
  if (parent === null || node.data.trim() === '') return;
  const style = getComputedStyle(parent);
  const { ascent, descent } = measure(`${style.fontWeight} ${style.fontSize} ${style.fontFamily}`);
  for (const { text, box } of linesOf(node, clipOf(parent))) {
    const shown = style.textTransform === 'uppercase' ? text.toUpperCase() : text;
    const line = tag('text', {
      x: box.left,
      y: box.top + (box.height - ascent - descent) / 2 + ascent,
      ...coloured('fill', style.color),
      'font-size': parseFloat(style.fontSize),
      'font-family': style.fontFamily,
      ...(style.fontWeight === '400' ? {} : { 'font-weight': style.fontWeight }),
      ...(style.fontStyle === 'normal' ? {} : { 'font-style': style.fontStyle }),
      ...(style.fontVariantNumeric === 'tabular-nums' ? { 'font-variant-numeric': 'tabular-nums' } : {}),
    });
    line.textContent = readable(shown);
    into.append(line);
    reach(pen, box);
  }
}

/** Where a text that is too long is cut on the screen. */
function clipOf(parent: Element): number {
  for (let box: Element | null = parent; box !== null; box = box.parentElement) {
    const style = getComputedStyle(box);
    if (style.textOverflow === 'ellipsis' && style.overflowX !== 'visible') {
      return box.scrollWidth > box.clientWidth ? box.getBoundingClientRect().right : Infinity;
    }
    if (style.display !== 'inline') return Infinity;
  }
  return Infinity;
}

function linesOf(node: Text, right: number): Line[] {
  const range = document.createRange();
  // A space at either end has room on the screen, and would be dropped in the drawing.
  range.setStart(node, node.data.length - node.data.trimStart().length);
  range.setEnd(node, node.data.trimEnd().length);
  const boxes = [...range.getClientRects()].filter(({ width }) => width > 0);
  const collapse = /pre/.test(getComputedStyle(node.parentElement!).whiteSpace)
    ? (text: string) => text.replace(/\n/g, '')
    : (text: string) => text.replace(/\s+/g, ' ').trim();
  if (boxes.length === 0) return [];
  if (boxes.length === 1 && boxes[0].right <= right + 0.5) {
    return [{ text: collapse(node.data), box: boxes[0] }];
  }
  const lines: Line[] = [];
  let place = 0;
  let isCut = false;
  for (const sign of node.data) {
    range.setStart(node, place);
    range.setEnd(node, (place += sign.length));
    const box = range.getClientRects()[0];
    if (box === undefined || box.width === 0) continue;
    if (box.right > right - 8) isCut = true; // room for the sign of what is missing
    else {
      const line = lines.at(-1);
      const isSame = line !== undefined && Math.abs(line.box.top - box.top) < box.height / 2;
      if (isSame) {
        line.text += sign;
        line.box = spanOf(line.box, box);
      } else if (sign.trim() !== '') lines.push({ text: sign, box });
    }
  }
  const last = lines.at(-1);
  if (isCut && last !== undefined) last.text += '…';
  return lines.map(({ text, box }) => ({ text: collapse(text), box }));
}

const spanOf = (one: DOMRect, other: DOMRect): DOMRect => {
  const [left, top] = [Math.min(one.left, other.left), Math.min(one.top, other.top)];
  const [right, bottom] = [Math.max(one.right, other.right), Math.max(one.bottom, other.bottom)];
  return new DOMRect(left, top, right - left, bottom - top);
};
