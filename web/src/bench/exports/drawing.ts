// What is on the screen as an SVG document of its own: boxes, drawings and pictures where they are,
// texts as texts. Colours are those of the light scheme, on white paper; controls are left out.

import { coloured, HEADING, MARGIN, plainColour, reach, readable, tag, writeDocument, type Pen } from './paper';
import { drawSvg } from './svg';
import { drawText } from './text';

const CONTROLS =
  'button.plain, form button, [type="range"], [type="search"], textarea, progress, details:not([open]), summary, .unseen, [data-export="none"]';

/** An element as it looks in the light scheme, with a title above it. */
export function drawElement(root: Element, title: string): string {
  return inLight(() => {
    const undo = unroll(root);
    const box = root.getBoundingClientRect();
    const page = tag('g', {});
    const pen: Pen = { left: box.left, top: box.top, right: box.left, bottom: box.top };
    drawNode(root, page, pen, true);
    const width = Math.ceil(pen.right - pen.left + 2 * MARGIN);
    const height = Math.ceil(pen.bottom - pen.top + 2 * MARGIN + HEADING);
    page.setAttribute('transform', `translate(${MARGIN - pen.left} ${MARGIN + HEADING - pen.top})`);
    for (const each of undo.reverse()) each();
    return writeDocument(width, height, title, [page]);
  });
}

/** Do something in the light scheme; nothing is painted on the screen meanwhile. */
export function inLight<T>(make: () => T): T {
  const { dataset } = document.documentElement;
  const before = dataset.theme;
  dataset.theme = 'light';
  dataset.still = ''; // no transition between the schemes
  try {
    return make();
  } finally {
    dataset.theme = before;
    delete dataset.still;
  }
}

/** Boxes that scroll show all that they hold, until it is undone. */
function unroll(root: Element): (() => void)[] {
  return [root, ...root.querySelectorAll('*')].flatMap((element) => {
    if (!(element instanceof HTMLElement)) return [];
    if (!/auto|scroll/.test(getComputedStyle(element).overflow)) return [];
    const before = element.getAttribute('style');
    const { scrollLeft, scrollTop, scrollWidth, scrollHeight, clientWidth, clientHeight } = element;
    if (scrollWidth > clientWidth) element.style.minWidth = `${scrollWidth}px`;
    if (scrollHeight > clientHeight) element.style.minHeight = `${scrollHeight}px`;
    element.style.maxHeight = 'none';
    element.style.flexShrink = '0';
    element.style.overflow = 'visible';
    return [
      () => {
        if (before === null) element.removeAttribute('style');
        else element.setAttribute('style', before);
        element.scrollTo(scrollLeft, scrollTop);
      },
    ];
  });
}

function drawNode(node: Node, into: SVGElement, pen: Pen, isRoot = false): void {
  if (node instanceof Text) return drawText(node, into, pen);
  if (!(node instanceof Element) || node.matches(CONTROLS)) return;
  const style = getComputedStyle(node);
  if (style.display === 'none' || style.visibility === 'hidden' || style.opacity === '0') return;
  if (node instanceof SVGSVGElement) return drawSvg(node, into, pen);
  let target = into;
  if (style.opacity !== '1') {
    target = tag('g', { opacity: style.opacity });
    into.append(target);
  }
  if (!isRoot) drawBox(node, style, target, pen);
  if (node instanceof HTMLCanvasElement) drawCanvas(node, target, pen);
  if (node instanceof HTMLInputElement || node instanceof HTMLSelectElement) {
    return drawValue(node, style, target, pen);
  }
  for (const child of node.childNodes) drawNode(child, target, pen);
}

const isClear = (colour: string) => plainColour(colour).alpha === 0;

function drawBox(element: Element, style: CSSStyleDeclaration, into: SVGElement, pen: Pen): void {
  const box = element.getBoundingClientRect();
  if (box.width === 0 || box.height === 0) return;
  const round = parseFloat(style.borderTopLeftRadius) || 0;
  const colour = style.backgroundColor;
  if (!isClear(colour)) {
    into.append(rectOf(box, { ...coloured('fill', colour), ...(round > 0 ? { rx: round } : {}) }));
    reach(pen, box);
  }
  const sides = (['Top', 'Right', 'Bottom', 'Left'] as const).map((side) => ({
    width: parseFloat(style[`border${side}Width`]) || 0,
    colour: style[`border${side}Color`],
    isDrawn: !/none|hidden/.test(style[`border${side}Style`]),
  }));
  const drawn = sides.map(({ width, colour, isDrawn }) => isDrawn && width > 0 && !isClear(colour));
  if (!drawn.some(Boolean)) return;
  reach(pen, box);
  const [first] = sides;
  if (drawn.every(Boolean) && sides.every(({ width, colour }) => width === first.width && colour === first.colour)) {
    const half = first.width / 2;
    const inner = new DOMRect(box.x + half, box.y + half, box.width - 2 * half, box.height - 2 * half);
    into.append(rectOf(inner, { fill: 'none', ...coloured('stroke', first.colour), 'stroke-width': first.width, rx: round }));
    return;
  }
  const { left, top, right, bottom } = box;
  const ends = [
    [left, top, right, top],
    [right, top, right, bottom],
    [left, bottom, right, bottom],
    [left, top, left, bottom],
  ];
  sides.forEach(({ width, colour }, n) => {
    const [x1, y1, x2, y2] = ends[n];
    if (drawn[n]) into.append(tag('line', { x1, y1, x2, y2, ...coloured('stroke', colour), 'stroke-width': width }));
  });
}

const rectOf = ({ x, y, width, height }: DOMRect, more: Record<string, string | number>): SVGElement =>
  tag('rect', { x, y, width, height, ...more });

function drawCanvas(canvas: HTMLCanvasElement, into: SVGElement, pen: Pen): void {
  const { x, y, width, height } = canvas.getBoundingClientRect();
  if (width === 0 || height === 0) return;
  reach(pen, canvas.getBoundingClientRect());
  into.append(tag('image', { x, y, width, height, href: canvas.toDataURL('image/png') }));
}

/** What is set in a field; fields themselves are no texts. */
function drawValue(
  field: HTMLInputElement | HTMLSelectElement,
  style: CSSStyleDeclaration,
  into: SVGElement,
  pen: Pen,
): void {
  const box = field.getBoundingClientRect();
  const isBox = field.type === 'checkbox' || field.type === 'radio';
  const value =
    field instanceof HTMLSelectElement
      ? (field.selectedOptions[0]?.text ?? '')
      : isBox
        ? field.checked
          ? '☑'
          : '☐'
        : field.value || field.placeholder;
  if (box.width === 0 || value === '') return;
  const size = isBox ? box.height : parseFloat(style.fontSize);
  const text = tag('text', {
    x: box.left + (isBox ? 0 : parseFloat(style.paddingLeft) + parseFloat(style.borderLeftWidth)),
    y: box.top + box.height / 2 + 0.35 * size,
    ...coloured('fill', style.color),
    'font-size': size,
    'font-family': style.fontFamily,
  });
  text.textContent = readable(value);
  into.append(text);
  reach(pen, box);
}
