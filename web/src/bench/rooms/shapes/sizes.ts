// Sizes that can be changed: their bounds, whether they fit together, and how costs are written.

export const FIELDS = ['batch', 'length', 'context', 'dim', 'heads', 'kv_heads', 'layers', 'hidden_dim'] as const;
export type Field = (typeof FIELDS)[number];
export type Typed = Partial<Record<Field, number>>;

export const MOST: Record<Field, number> = {
  batch: 1 << 16,
  length: 1 << 20,
  context: 1 << 20,
  dim: 1 << 16,
  heads: 1024,
  kv_heads: 1024,
  layers: 128,
  hidden_dim: 1 << 20,
};

/** What is wrong with sizes: the key of a sentence, and what fills it in. */
export type Fault = { key: string; values: Record<string, string | number>; field: Field };

export function readSize(field: Field, text: string): number | Fault {
  const value = Number(text);
  if (/^\d{1,9}$/.test(text.trim()) && value >= 1 && value <= MOST[field]) return value;
  return { key: 'bench.shapes.range', values: { least: 1, most: MOST[field], value: text.trim() || '–' }, field };
}

const divisors = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1).filter((each) => n % each === 0);
/** The divisors next to a number. */
const near = (n: number, to: number): string =>
  divisors(n)
    .sort((a, b) => Math.abs(a - to) - Math.abs(b - to))
    .slice(0, 3)
    .sort((a, b) => a - b)
    .join(', ');

/** Whether heads divide the width, and key-value heads the heads; null where they do. */
export function findMisfit(dim: number, heads: number, kvHeads: number, hasOwnWidth: boolean): Fault | null {
  if (!hasOwnWidth && dim % heads !== 0) {
    return { key: 'bench.shapes.divide', values: { heads, dim, fitting: near(dim, heads) }, field: 'heads' };
  }
  if (heads % kvHeads !== 0) {
    return { key: 'bench.shapes.group', values: { kv: kvHeads, heads, fitting: near(heads, kvHeads) }, field: 'kv_heads' };
  }
  return null;
}

/** 1,234,567 as 1.23 M. */
export function brief(value: number): string {
  const units = ['', ' k', ' M', ' G', ' T', ' P', ' E'];
  let n = 0;
  while (value >= 1000 && n < units.length - 1) {
    value /= 1000;
    n++;
  }
  return `${n === 0 ? value : value.toPrecision(3)}${units[n]}`;
}

export function bytesOf(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let n = 0;
  while (value >= 1024 && n < units.length - 1) {
    value /= 1024;
    n++;
  }
  return `${n === 0 ? value : value.toPrecision(3)} ${units[n]}`;
}

/** The letters in a size: those of (H+2K)·D are H, K and D. */
export const lettersIn = (size: string): string[] =>
  size === 'max_len' ? [size] : (size.match(/[A-Z]/g) ?? []);
