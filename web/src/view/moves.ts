// How keys move through a table of rows and columns.

export type Spot = { row: number; column: number };

export function moved(key: string, at: Spot, rows: number, columns: number): Spot | null {
  const within = (n: number, end: number) => Math.min(Math.max(n, 0), end - 1);
  const by = (down: number, right: number): Spot => ({
    row: within(at.row + down, rows),
    column: within(at.column + right, columns),
  });
  switch (key) {
    case 'ArrowUp':
      return by(-1, 0);
    case 'ArrowDown':
      return by(1, 0);
    case 'ArrowLeft':
      return by(0, -1);
    case 'ArrowRight':
      return by(0, 1);
    case 'PageUp':
      return by(-10, 0);
    case 'PageDown':
      return by(10, 0);
    case 'Home':
      return { row: at.row, column: 0 };
    case 'End':
      return { row: at.row, column: columns - 1 };
    default:
      return null;
  }
}
