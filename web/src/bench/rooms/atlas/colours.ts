// The colours of tiles: the scale of weights, from paper to ink, as a canvas stores them.

import { colourOf, type Colour } from '../../../view/colour';
import type { Curve, Paint, Scale } from './tile';

const BROKEN: Colour = [214, 90, 30]; // what is not a number

const asPixel = ([red, green, blue]: Colour): number =>
  new Uint32Array(new Uint8Array([red, green, blue, 255]).buffer)[0];

export function paintOf(isDark: boolean, scale: Scale, curve: Curve): Paint {
  return {
    name: [isDark, scale, curve].join(),
    isDark,
    colours: Uint32Array.from({ length: 256 }, (_, i) => asPixel(colourOf(i / 255, isDark))),
    broken: asPixel(BROKEN),
    scale,
    curve,
  };
}
