// What a box is called.

import { NAMES } from './texts';
import type { Box } from './wire';

type Say = (key: string, values?: Record<string, string | number>) => string;

export function nameOf(box: Box, say: Say): string {
  const { name, detail, kind, blocks } = box;
  if (kind === 'model') return name;
  if (name === 'scale') return `× ${Number(detail).toPrecision(4).replace(/\.?0+$/, '')}`;
  if (!(name in NAMES)) return name === 'norm' ? detail : name; // an activation, softmax
  const text = say(NAMES[name], { detail });
  if (kind !== 'block') return text;
  const last = blocks[blocks.length - 1];
  return blocks.length > 1 ? `${text} ${blocks[0]} … ${last}` : `${text} ${last}`;
}
