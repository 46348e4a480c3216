// One row of attention in numbers, and numbers as the course writes them (render/numbers.py).

export type RowSteps = { scores: number[]; exps: number[]; weights: number[]; out: number[] };

/** Dot products, scaled, through softmax, to the weighted sum of the values. */
export function attendRow(dots: number[], scale: number, v: number[][]): RowSteps {
  const scores = dots.map((dot) => dot * scale);
  const largest = Math.max(...scores);
  const exps = scores.map((score) => Math.exp(score - largest));
  const total = exps.reduce((sum, each) => sum + each, 0);
  const weights = exps.map((each) => each / total);
  const out = v[0].map((_, i) => weights.reduce((sum, weight, j) => sum + weight * v[j][i], 0));
  return { scores, exps, weights, out };
}

const minus = (text: string) => text.replaceAll('-', '−');

/** Numbers with equally many decimals: none if all are whole, two at most. */
export function writeNumbers(values: number[], most = 2): string[] {
  const finite = values.filter(Number.isFinite).map(Math.abs);
  const largest = Math.max(0, ...finite);
  const write = (value: number, digits: number) =>
    Number.isFinite(value) ? minus(value.toFixed(digits)) : value > 0 ? '∞' : value < 0 ? '−∞' : 'NaN';
  if (largest >= 1e6 || (largest > 0 && largest < 1e-3))
    return values.map((value) => minus(value.toExponential(2)));
  if (largest > 0 && largest < 0.1) most = 1 - Math.floor(Math.log10(largest));
  const near = 1e-3 * 10 ** -most;
  let digits = 0;
  const isNear = (value: number) => Math.abs(value - Number(value.toFixed(digits))) < near;
  while (digits < most && !finite.every(isNear)) digits++;
  return values.map((value) => write(value, digits));
}

/** Weights with two decimals, or three where one of them needs it; 0 is exactly 0. */
export function writeWeights(weights: number[]): string[] {
  const digits = weights.some((weight) => weight > 0 && weight < 0.01) ? 3 : 2;
  const least = 0.5 * 10 ** -digits;
  return weights.map((weight) => {
    if (weight === 0) return '0';
    return weight > 0 && weight < least ? `<${(10 ** -digits).toFixed(digits)}` : weight.toFixed(digits);
  });
}
