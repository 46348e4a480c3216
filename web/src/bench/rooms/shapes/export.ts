// What Shapes shows, as a table: every box with its results and what it costs.

import type { Table } from '../../exports/files';
import { visible } from './layout';
import { nameOf } from './names';
import type { NamedShape } from '../steps/wire';
import type { Box } from './wire';

type Say = (key: string, values?: Record<string, string | number>) => string;

export function tabulateShapes(model: Box, say: Say): Table {
  const all = (box: Box): string[] => [box.id, ...box.children.flatMap(all)];
  const written = (shapes: NamedShape[], of: (shape: NamedShape) => (string | number)[]) =>
    shapes.map((shape) => `${shape.name} [${of(shape).join(', ')}]`).join('; ');
  return [
    ['id', 'level', 'name', 'times', 'result', 'shape', 'parameters', 'FLOPs', 'bytes'],
    ...visible(model, new Set(all(model))).map(({ box, depth }) => [
      box.id,
      depth,
      nameOf(box, say),
      box.count,
      written(box.outputs, ({ letters }) => letters),
      written(box.outputs, ({ numbers }) => numbers),
      box.cost.parameters,
      box.cost.flops,
      box.cost.bytes,
    ]),
  ];
}
