// A trace as it travels: what render/page.py writes into a page, name for name.

export type Packed = { shape: number[]; float32: string };
export type Bits = { shape: number[]; bits: string };
/** Row vectors as whole numbers from −32767 to 32767, and what one step of each row is worth. */
export type Rows = { int16: string; steps: string };
export type Offset = number | number[] | null;

export type MaskParts =
  | { kind: 'Causal'; offset: Offset }
  | { kind: 'Window'; left: number | null; right: number | null; offset: Offset }
  | { kind: 'Prefix'; length: number | number[] }
  | { kind: 'Padding'; lengths: number[]; of: 'keys' | 'queries' | 'both'; side: 'right' | 'left' }
  | { kind: 'Documents'; ids: number[] | number[][]; query_ids: number[] | number[][] | null }
  | { kind: 'Explicit'; tensor: number }
  | { kind: 'And' | 'Or'; a: MaskParts; b: MaskParts }
  | { kind: 'Not'; a: MaskParts };

export type BiasParts =
  | { kind: 'ALiBi'; slopes: number; offset: Offset }
  | { kind: 'RelativeBuckets'; table: number; buckets: number[]; first: number; offset: Offset }
  | { kind: 'ExplicitBias'; tensor: number }
  | { kind: 'BiasSum'; a: BiasParts; b: BiasParts };

/** How far weights · v lie from what the model computed; null is not a number. */
export type DifferenceParts = {
  recorded: number | null; // with the operands as they were recorded
  page: number | null; // and as they are here, in 16 bits
  queries: number | null; // how many were compared, null for all
};

export type SiteParts = {
  name: string;
  queries: string;
  keys: string;
  shape: [B: number, H: number, L: number, S: number];
  heads: number[]; // their numbers in the model: not all may have been recorded
  stands: number[]; // the key at which each query stands
  n_kv_heads: number;
  head_dim: number;
  value_dim: number;
  dtype: string;
  scale: number;
  softcap: number | null;
  q: Rows;
  k: Rows;
  v: Rows;
  mask: MaskParts | null;
  bias: BiasParts | null;
  difference: DifferenceParts | null; // null: the model's output was not recorded
};

export type RunParts = {
  texts: Record<string, string[][]>;
  sites: SiteParts[];
  refusals: Record<string, string>;
};

export type TraceParts = {
  version: number;
  language: string;
  languages: Record<string, Record<string, string>>;
  model: Record<string, unknown>;
  tensors: (Packed | Bits)[];
  runs: RunParts[];
};
