// What the page asks of its engine, and what the engine answers; both may lie in other threads.

import type { Matrix, Tensor } from '../trace/numbers';
import type { Settings } from '../trace/picture';
import type { Statistics } from '../trace/summary';
import type { DifferenceParts } from '../trace/wire';

export type Choice = { run: number; site: number; sequence: number; head: number };

export type Message =
  | { kind: 'tensors'; text: string }
  | { kind: 'site'; run: number; site: number; text: string } // its operands, as they travel
  | { kind: 'look'; id: number; choice: Choice; settings: Settings; asked: Asked };

/** What a look is to bring. */
export type Asked = {
  hasWeights?: boolean; // of all cells
  mayBePart?: boolean; // of a large head, some queries first
};

/** A head as the page needs it: its operands, what they amount to, and its picture. */
export type Look = {
  id: number;
  step: number; // 1: of all queries; otherwise of queries 0, step, 2 · step …, and more will follow
  operands: { q: Matrix; k: Matrix; v: Matrix } | null; // null: those that came with a part of it
  difference: DifferenceParts | null; // of the site
  tensors: [number, Tensor][]; // of the site's mask and bias, those not sent before
  statistics: Statistics;
  image: ImageBitmap;
  top: number; // the weight of the strongest colour
  isCapped: boolean; // some weights are larger still
  weights: Float32Array | null; // of all cells, row after row, where they were asked for
};
