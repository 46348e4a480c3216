// How wide the columns of a grid are, and which of them are in sight: only those are drawn.

const WIDE = /[\u1100-\u115f\u2e80-\uffdc]/; // characters as wide as two
const LEAST = 30;
const MOST = 104;
const AROUND = 4; // columns drawn on either side of those in sight

/** Pixels for the longest of these texts, within limits. */
export function textWidth(texts: Iterable<string>): number {
  let longest = 0;
  for (const text of texts) {
    let cells = 0;
    for (const character of text) cells += WIDE.test(character) ? 2 : 1;
    longest = Math.max(longest, cells);
  }
  return Math.min(MOST, Math.max(LEAST, Math.ceil(12 + 7.2 * longest)));
}

/** From which column to which one draws, end excluded. */
export function columnsInSight(
  left: number,
  width: number,
  step: number,
  n: number,
): { from: number; to: number } {
  const from = Math.max(0, Math.min(n - 1, Math.floor(left / step) - AROUND));
  const to = Math.min(n, Math.ceil((left + width) / step) + AROUND);
  return { from, to: Math.max(to, from + 1) };
}
