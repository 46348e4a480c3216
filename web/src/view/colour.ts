// From a share of 1 to a colour: paper where there is no weight, ink where there is all of it. The
// lightness changes evenly, so the scale also reads in grey.

export type Colour = [red: number, green: number, blue: number];

const LIGHT: Colour[] = [
  [255, 255, 255],
  [226, 241, 238],
  [190, 223, 218],
  [146, 201, 195],
  [99, 176, 169],
  [53, 148, 142],
  [15, 115, 110],
  [8, 82, 80],
  [3, 48, 49],
];
const DARK: Colour[] = [
  [24, 28, 31],
  [27, 48, 50],
  [29, 70, 71],
  [31, 95, 94],
  [38, 123, 119],
  [56, 153, 146],
  [86, 184, 175],
  [136, 214, 205],
  [214, 245, 239],
];
// The other side of a difference: as light as its counterpart at every step.
const LIGHT_AGAINST: Colour[] = [
  [255, 255, 255],
  [250, 235, 225],
  [244, 210, 189],
  [233, 179, 149],
  [219, 146, 107],
  [197, 112, 69],
  [163, 79, 34],
  [119, 54, 20],
  [72, 31, 10],
];
const DARK_AGAINST: Colour[] = [
  [24, 28, 31],
  [54, 42, 36],
  [85, 58, 44],
  [118, 76, 52],
  [155, 97, 65],
  [189, 123, 85],
  [218, 154, 118],
  [239, 190, 162],
  [253, 235, 225],
];
const anchors = (isDark: boolean): Colour[] => (isDark ? DARK : LIGHT);
const anchorsAgainst = (isDark: boolean): Colour[] => (isDark ? DARK_AGAINST : LIGHT_AGAINST);

export const colourOf = (share: number, isDark: boolean): Colour =>
  between(anchors(isDark), share);

/** The colour of a difference from −1 to 1; 0 is paper. */
export const signedColour = (share: number, isDark: boolean): Colour =>
  between(share < 0 ? anchorsAgainst(isDark) : anchors(isDark), Math.abs(share));

function between(all: Colour[], share: number): Colour {
  const place = Math.min(1, Math.max(0, share)) * (all.length - 1);
  const low = Math.min(Math.floor(place), all.length - 2);
  const [a, b] = [all[low], all[low + 1]];
  return a.map((from, i) => Math.round(from + (b[i] - from) * (place - low))) as Colour;
}

/** The colours of the shares 0, 1/255 … 1, as a canvas stores them. */
export function palette(isDark: boolean): Uint32Array {
  return (palettes[Number(isDark)] ??= Uint32Array.from({ length: 256 }, (_, i) =>
    asPixel(colourOf(i / 255, isDark)),
  ));
}
const palettes: (Uint32Array | undefined)[] = [];

export const asPixel = ([red, green, blue]: Colour): number =>
  new Uint32Array(new Uint8Array([red, green, blue, 255]).buffer)[0];

/** The scale as CSS. */
export const gradient = (isDark: boolean): string => asGradient(anchors(isDark));

/** The scale of differences as CSS, from −1 to 1. */
export const signedGradient = (isDark: boolean): string =>
  asGradient([...[...anchorsAgainst(isDark)].reverse(), ...anchors(isDark).slice(1)]);

const asGradient = (colours: Colour[]): string =>
  `linear-gradient(to right, ${colours.map((c) => `rgb(${c.join(' ')})`).join(', ')})`;

/** How bright a colour is, from 0 to 1 (WCAG 2). */
export const luminance = ([red, green, blue]: Colour): number =>
  0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
const linear = (part: number): number =>
  part <= 10 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4;

/** Black or white, whichever reads better on a colour of this share. */
export const inkOn = (share: number, isDark: boolean): '#000' | '#fff' =>
  luminance(signedColour(share, isDark)) > EVEN ? '#000' : '#fff';
const EVEN = Math.sqrt(1.05 * 0.05) - 0.05; // both have the same contrast
