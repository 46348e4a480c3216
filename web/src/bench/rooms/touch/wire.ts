// What the jobs of this room answer: workbench/wire/touch.py, name for name.

export type SiteFacts = {
  scale: number;
  mask: string | null;
  has_bias: boolean;
  positions: string | null;
  is_cross: boolean;
};
export type CellShift = { key: number; label: string; before: number; after: number };
export type HeadShift = {
  rows: string[];
  keys: string[];
  first_row: number;
  first_key: number;
  before: number[][];
  after: number[][];
  strongest: CellShift[];
};
export type TokenShift = { token: string; before: number; after: number };
export type HeadDistance = { site: string; head: number; distance: number };
export type ChangeAnswer = {
  change: string;
  site: SiteFacts;
  query: number;
  head: HeadShift | null;
  positions: string[];
  position: number;
  tokens: TokenShift[];
  divergence: number[];
  moved: HeadDistance[];
};
export type RewriteAnswer = { before: string | null; after: string | null };
