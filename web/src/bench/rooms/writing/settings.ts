// How a text is written, as the address says it: writing.temperature, writing.kept …

export type Settings = {
  max_new_tokens: number;
  temperature: number;
  top_k: number | null;
  top_p: number | null;
  seed: number;
  beams: number;
};

export const MOST_TOKENS = 200;
export const MOST_BEAMS = 8;

type Options = Readonly<Record<string, string>>;

/** What is usual: a translator searches with four beams, a writer samples. */
export const usual = (isTranslator: boolean): Settings => ({
  max_new_tokens: 60,
  temperature: isTranslator ? 0 : 0.8,
  top_k: null,
  top_p: null,
  seed: 1,
  beams: isTranslator ? 4 : 1,
});

const LIMITS: Record<keyof Settings, [least: number, most: number, isWhole: boolean]> = {
  max_new_tokens: [1, MOST_TOKENS, true],
  temperature: [0, 100, false],
  top_k: [1, 1_000_000, true],
  top_p: [0.0001, 1, false],
  seed: [0, 2_000_000_000, true],
  beams: [1, MOST_BEAMS, true],
};

/** A number within its limits, or null where there is none. */
export function within(name: keyof Settings, text: string): number | null {
  const [least, most, isWhole] = LIMITS[name];
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) return null;
  const rounded = isWhole ? Math.round(value) : value;
  return Math.min(most, Math.max(least, rounded));
}

export function readSettings(options: Options, isTranslator: boolean): Settings {
  const found: Settings = usual(isTranslator);
  for (const name of Object.keys(LIMITS) as (keyof Settings)[]) {
    const value = within(name, options[`writing.${name}`] ?? '');
    if (value !== null) (found as Record<string, number | null>)[name] = value;
  }
  return found;
}

/** Tokens that stay, and the text that they belong to: of another one they mean nothing. */
export function writtenKept(tokens: number[], reading: string): string | null {
  return tokens.length === 0 ? null : `${mark(reading)}~${tokens.join('.')}`;
}

export function readKept(text: string | undefined, reading: string): number[] {
  const [of, tokens] = (text ?? '').split('~');
  if (tokens === undefined || of !== mark(reading) || !/^\d{1,9}(\.\d{1,9})*$/.test(tokens)) return [];
  return tokens.split('.').slice(0, MOST_TOKENS).map(Number);
}

/** A short number of a text (FNV-1a). */
function mark(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(36);
}
