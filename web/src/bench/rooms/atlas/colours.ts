// The colours of tiles: the scale of weights, from paper to ink, as a canvas stores them.

import { asPixel, palette, type Colour } from '../../../view/colour';
import type { Curve, Paint, Scale } from './tile';

const BROKEN: Colour = [214, 90, 30]; // what is not a number

export function paintOf(isDark: boolean, scale: Scale, curve: Curve): Paint {
  return {
    name: [isDark, scale, curve].join(),
    isDark,
    colours: palette(isDark),
    broken: asPixel(BROKEN),
    scale,
    curve,
  };
}
