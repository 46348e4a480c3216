// What the jobs `training` and `film` answer, name for name as workbench/wire/training.py.

export type Mark = { size: number; checksum: number };
export type Measurement = { step: number; epoch: number | null; values: Record<string, number> };
export type Sample = { step: number; text: string; sample: string };
export type LinesRead<T> = { mark: Mark; is_anew: boolean; is_more: boolean; lines: T[] };

export type TrainingAnswer = {
  folder: string;
  state: 'begun' | 'unfinished' | 'stopped' | 'diverged' | 'finished';
  seconds_since: number | null;
  task: string | null;
  steps: number | null;
  epochs: number | null;
  text: string | null;
  snapshots_every: number;
  snapshots: number[];
  metrics: LinesRead<Measurement>;
  samples: LinesRead<Sample>;
};

export type HeadName = { site: string; head: number };
export type HeadMap = HeadName & {
  rows: string[];
  keys: string[];
  weights: number[][];
  is_pooled: boolean;
};
export type Frame = { step: number; maps: HeadMap[] };
export type FilmAnswer = {
  sites: { site: string; heads: number[] }[];
  chosen: HeadName[];
  frames: Frame[];
  unreadable: number[];
};
