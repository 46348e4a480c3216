// What the jobs `training` and `film` answer, name for name as workbench/wire/training.py.

import type { Schemas } from '../../schemas';

export type Mark = Schemas['Mark'];
export type Measurement = Schemas['Measurement'];
export type Sample = Schemas['Sample'];
export type LinesRead<T> = { mark: Mark; is_anew: boolean; is_more: boolean; lines: T[] };

export type TrainingAnswer = Schemas['TrainingAnswer'];

export type HeadName = { site: string; head: number };
export type HeadMap = HeadName & {
  rows: string[];
  keys: string[];
  weights: number[][];
  is_pooled: boolean;
};
export type Frame = Schemas['Frame'];
export type FilmAnswer = Schemas['FilmAnswer'];
