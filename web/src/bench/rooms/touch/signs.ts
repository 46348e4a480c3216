// Differences as people read them: the sign is always there.

import { number, significant } from '../../../view/format';

/** A difference of weights: +0.312, −0.0041, 0. */
export const signed = (value: number): string => {
  if (Math.abs(value) < 5e-7) return number(0);
  return (value > 0 ? '+' : '') + significant(value, 3);
};

/** A difference of probabilities, in percentage points. */
export const points = (value: number): string => {
  const share = 100 * value;
  if (Math.abs(share) < 5e-3) return number(0);
  return (share > 0 ? '+' : '') + significant(Number(share.toFixed(2)), 4);
};
