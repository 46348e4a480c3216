// Long lists: only the rows in sight, and some around them, are in the document.

const MARGIN = 10; // rows beyond either edge, so that scrolling meets no gap

export function rowsInSight(scrolled: number, height: number, row: number, n: number, margin = MARGIN) {
  const from = Math.max(0, Math.min(n, Math.floor(scrolled / row)) - margin);
  const to = Math.min(n, Math.ceil((scrolled + Math.max(height, row)) / row) + margin);
  return { from, to, rows: Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i) };
}
