// What the jobs `write` and `looks` answer, name for name as workbench/wire/writing.py.

export type Choice = { token: number; piece: string; before: number; after: number | null };

export type Step = {
  token: number;
  piece: string;
  is_kept: boolean;
  is_end: boolean;
  chosen: Choice;
  rank: number;
  entropy: number;
  entropy_after: number | null;
  top: Choice[];
};

export type Fate = 'extended' | 'dead' | 'pruned' | 'finished' | 'open';

export type BeamNode = {
  parent: number | null;
  token: number;
  piece: string;
  text: string;
  depth: number;
  log_probability: number;
  score: number;
  fate: Fate;
  least_kept: number | null;
  is_best: boolean;
};

export type Written = {
  source: string[];
  prompt: string[];
  text: string;
  tokens: number[];
  ending: 'stop' | 'length';
  steps: Step[];
  tree: BeamNode[] | null;
  score: number | null;
};

export type LookedAt = { key: number; weight: number };
export type Looks = { of: 'source' | 'tokens'; heads: number; rows: LookedAt[][] };
