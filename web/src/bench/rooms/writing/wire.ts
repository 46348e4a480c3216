// What the jobs `write` and `looks` answer, name for name as workbench/wire/writing.py.

import type { Schemas } from '../../schemas';

export type Choice = Schemas['Choice'];

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

export type BeamNode = Schemas['BeamNode'];

export type Written = {
  source: string[];
  prompt: string[];
  text: string;
  copied: string[];
  tokens: number[];
  ending: 'stop' | 'length';
  steps: Step[];
  tree: BeamNode[] | null;
  score: number | null;
};

export type LookedAt = Schemas['LookedAt'];
export type Looks = { of: 'source' | 'tokens'; heads: number; rows: LookedAt[][] };
