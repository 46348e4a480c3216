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

/** Two digits that mean something, however small the number: 0.87, 0.00042, 3.1e−7. */
export function significant(value: number, digits = 2): string {
  if (value === 0 || !Number.isFinite(value)) return number(value);
  if (Math.abs(value) < 1e-4) return scientific(value, digits - 1);
  return minus(String(Number(value.toPrecision(digits))));
}

/** A weight as a share of all: 96.1 %, 0.031 %. */
export function percent(weight: number): string {
  if (Number.isNaN(weight)) return 'NaN';
  const share = 100 * weight;
  if (share > 0 && share < 1e-4) return '< 0.0001 %';
  const text = share >= 10 ? share.toFixed(1) : String(Number(share.toPrecision(2)));
  return `${text.replace(/\.0$/, '')} %`;
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
