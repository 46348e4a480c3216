// From a share of 1 to a colour: viridis (van der Walt and Smith 2015), from its anchors.

export type Colour = [red: number, green: number, blue: number];

const ANCHORS: Colour[] = [
  [68, 1, 84],
  [72, 24, 106],
  [71, 45, 123],
  [66, 64, 134],
  [59, 82, 139],
  [51, 99, 141],
  [44, 114, 142],
  [38, 130, 142],
  [33, 145, 140],
  [31, 160, 136],
  [40, 174, 128],
  [63, 188, 115],
  [94, 201, 98],
  [132, 212, 75],
  [173, 220, 48],
  [216, 226, 25],
  [253, 231, 37],
];

export function viridis(share: number): Colour {
  const place = Math.min(1, Math.max(0, share)) * (ANCHORS.length - 1);
  const low = Math.min(Math.floor(place), ANCHORS.length - 2);
  const [a, b] = [ANCHORS[low], ANCHORS[low + 1]];
  return a.map((from, i) => Math.round(from + (b[i] - from) * (place - low))) as Colour;
}

/** The scale as CSS. */
export const gradient = (): string =>
  `linear-gradient(to right, ${ANCHORS.map((c) => `rgb(${c.join(' ')})`).join(', ')})`;

/** Whether black reads better than white on a colour of this share. */
export const isLight = (share: number): boolean => share > 0.62;
