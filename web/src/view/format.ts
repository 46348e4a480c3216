// Numbers as people read them: a real minus, no more digits than there are.

export function number(value: number, digits = 5): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e6) return scientific(value, Math.min(2, digits - 1));
  return minus(value.toPrecision(digits));
}

export function fixed(value: number, places = 4): string {
  return Number.isFinite(value) ? minus(value.toFixed(places)) : number(value);
}

/** A weight, small ones too: 0.1234, 3.1e−7. */
export function weight(value: number): string {
  if (value === 0) return '0';
  return value > 0 && value < 5e-5 ? scientific(value, 1) : fixed(value, 4);
}

export function scientific(value: number, digits = 1): string {
  return minus(value.toExponential(digits).replace('e+', 'e'));
}

const minus = (text: string): string => text.replaceAll('-', '−');

/** A text inside a sentence, whatever its direction. */
export const isolated = (text: string): string => `\u2068${text}\u2069`;

/** Numbers in a column: as many places for all, unless they are very small or large. */
export function column(values: number[]): string[] {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const isPlain = largest === 0 || (largest >= 0.01 && largest < 1e4);
  return values.map((value) => (isPlain ? fixed(value, 4) : number(value, 4)));
}
