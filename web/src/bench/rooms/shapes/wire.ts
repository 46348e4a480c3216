// What the job `shapes` answers.

import type { Schemas } from '../../schemas';
import type { NamedShape } from '../steps/wire';

export type Cost = { parameters: number; flops: number; bytes: number };
export type Product = { left: string[]; right: string[]; out: string[]; summed: string };
export type Box = {
  id: string;
  kind: 'model' | 'stack' | 'section' | 'block' | 'part' | 'step';
  name: string;
  detail: string;
  count: number;
  blocks: number[];
  cost: Cost;
  inputs: NamedShape[];
  outputs: NamedShape[];
  parameters: NamedShape[];
  product: Product | null;
  is_held: boolean;
  is_tied: boolean;
  children: Box[];
};
export type Sizes = {
  batch: number;
  length: number;
  context: number | null;
  dim: number;
  heads: number;
  kv_heads: number;
  head_dim: number;
  layers: number;
  hidden_dim: number;
};
export type ShapesAnswer = Schemas['ShapesAnswer'];
export type MeasuredShapes = Schemas['MeasuredShapesAnswer'];
