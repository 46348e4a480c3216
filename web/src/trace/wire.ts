// A page as it travels: what render/page/document.py writes, name for name. What is small and shown at once
// lies in one place, the operands of each site in another, which only the engine reads.

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
  queries: number[]; // for each sequence, which of the run's names its rows have
  keys: number[];
  next: number[] | null; // and which the tokens after those that rows read; null: none predicted
  shape: [B: number, H: number, L: number, S: number];
  heads: number[]; // their numbers in the model: not all may have been recorded
  query_positions: number | number[]; // the key position of each query; of a run of them, the first
  n_kv_heads: number;
  sharpness?: (number | null)[][]; // of a page, (B, H): 0 even, 1 a single key; null: nothing to choose from
  head_dim: number;
  value_dim: number;
  dtype: string;
  scale: number;
  softcap: number | null;
  mask: MaskParts | null;
  bias: BiasParts | null;
};

export type RunParts = {
  titles: string[]; // what was read and written, for each sequence
  crosses: boolean; // one text is read and another written
  names: (string | null)[][]; // lists of tokens, each once; null: not known
  sites: SiteParts[];
  refusals: Record<string, string>;
};

/** Where a page opens: the head and the cell that tell most. */
export type Opening = {
  run: number;
  sequence: number;
  site: number;
  head: number;
  query: number;
  key: number;
};

export type PageParts = {
  kind: 'trace';
  version: number;
  language: string;
  languages: Record<string, Record<string, string>>;
  name: string; // of the model
  model: Record<string, unknown>;
  opening: Opening;
  runs: RunParts[];
};

/** The operands of a site, and how exact they are; null: the model's output was not recorded. */
export type SiteOperands = { q: Rows; k: Rows; v: Rows; difference: DifferenceParts | null };
/** What masks and biases hold, each tensor once. */
export type TensorParts = (Packed | Bits)[];
