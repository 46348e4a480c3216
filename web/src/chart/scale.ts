// From a number to the strength of a colour, and to its place along a bar.

import type { CellsParts, Value } from './wire';

/** Where the colours of a panel end: where it says, else at the number of the largest size. */
export function largest(panel: Pick<CellsParts, 'values' | 'most'>): number {
  if (panel.most !== null) return panel.most;
  let most = 0;
  for (const row of panel.values)
    for (const value of row) most = Math.max(most, Math.abs(value ?? 0));
  return most;
}

/** The strength of a colour, 0 … 1. */
export const strength = (value: Value, most: number): number =>
  value === null || most === 0 ? 0 : Math.min(1, Math.abs(value) / most);

/** Where bars begin and end, as shares of the room: zero is always in sight. */
export function along(values: Value[]): (value: number) => { left: number; width: number } {
  const known = values.filter((value) => value !== null);
  const low = Math.min(0, ...known);
  const high = Math.max(0, ...known);
  const room = high - low || 1;
  return (value) => ({
    left: (Math.min(0, value) - low) / room,
    width: Math.abs(value) / room,
  });
}
