// What the jobs of this room answer: workbench/wire/flow.py, name for name.

import type { TreeParts } from '../../../tree/wire';

export type Words = Record<string, string>; // by language
export type Border = { name: string; norm: number };
export type Inflow = {
  name: string;
  kind: 'self' | 'cross' | 'mlp' | 'mixer' | 'change' | 'layers';
  layer: number;
  site: string | null;
  norm: number;
  share: number;
};
export type FlowAnswer = {
  stack: string;
  position: number;
  label: string;
  borders: Border[];
  inflows: Inflow[];
  has_readout: boolean;
};
export type Said = { token: string; id: number; probability: number };
export type BorderLens = {
  name: string;
  top: Said[];
  entropy: number;
  divergence: number;
  rank: number;
};
export type LensAnswer = { borders: BorderLens[]; settled: number };
export type AttributeAnswer = {
  token: string;
  against: string | null;
  position: string;
  logit: number;
  shares: { name: string; value: number; part: string; head: number | null }[];
  remainder: number;
  frozen: Words;
};
export type WhyAnswer = {
  token: string;
  against: string;
  position: string;
  logit: number;
  trees: Record<string, TreeParts>;
  named: string[];
};
export type Judged = {
  whole: number;
  kept: number;
  removed: number;
  none: number;
  carried: number;
  needed: number;
  n_parts: number;
  random_kept: number[];
  random_removed: number[];
  is_telling: boolean;
  is_enough: boolean;
  is_needed: boolean;
};
export type VerdictAnswer = { sentence: Words; numbers: Judged | null };
