// A tensor as sheets of paper: its last two sizes are a sheet's, the others say how many there are.

export interface Sheets {
  n: number; // as many as are drawn
  width: number; // of a sheet, relative to the largest size of the flow
  height: number;
}

export const MOST_SHEETS = 4;

export function sketchShape(shape: number[], largest: number): Sheets {
  const [height, width] = [1, 1, ...shape].slice(-2);
  const n = shape.slice(0, -2).reduce((product, size) => product * size, 1);
  // Square roots: areas would be proportional to the number of numbers, were it not for sheets of 768 beside 10.
  const share = (size: number) => Math.sqrt(size / Math.max(1, largest));
  return { n: Math.min(MOST_SHEETS, n), width: share(width), height: share(height) };
}

export const largestSize = (shapes: number[][]) =>
  Math.max(1, ...shapes.flatMap((shape) => shape.slice(-2)));
