// What the jobs of this room answer: workbench/wire/flow.py, name for name.

import type { Schemas } from '../../schemas';
import type { TreeParts } from '../../../tree/wire';

export type Words = Record<string, string>; // by language
export type Border = Schemas['Border'];
export type Inflow = Schemas['Inflow'];
export type FlowAnswer = Schemas['FlowAnswer'];
export type Said = Schemas['Said'];
export type BorderLens = Schemas['BorderLens'];
export type LensAnswer = Schemas['LensAnswer'];
export type AttributeAnswer = Schemas['AttributeAnswer'];
export type WhyAnswer = {
  token: string;
  against: string;
  position: string;
  logit: number;
  trees: Record<string, TreeParts>;
  named: string[];
};
export type Judged = Schemas['Judged'];
export type VerdictAnswer = Schemas['VerdictAnswer'];
