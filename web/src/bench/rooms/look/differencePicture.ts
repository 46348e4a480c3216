// A difference as a heat map draws it: its pixels, and the number of each cell with its sign.

import { NOWHERE, rowTop, signedShare, type Difference } from '../../../trace/difference';
import type { Pixels, Settings } from '../../../trace/picture';
import { inkOn } from '../../../view/colour';
import type { Picture, Written } from '../../../view/heat';

export function differencePicture(
  found: Difference,
  { rgba, width, height, top }: Pixels,
  settings: Settings,
): Picture {
  const { L, S, values } = found;
  const { factor, leavesFirst, isRooted, isDark } = settings;
  const image = new OffscreenCanvas(width, height);
  image.getContext('2d')!.putImageData(new ImageData(rgba, width, height), 0, 0);
  const writer = (query: number) => {
    const own = settings.scale === 'row' ? rowTop(found, query, leavesFirst ? 1 : 0) : top;
    return (key: number): Written | null => {
      const value = values[query * S + key];
      if (value === NOWHERE) return null;
      const ink = inkOn(signedShare(value, own, isRooted), isDark);
      return { text: written(value), ink };
    };
  };
  return { L, S, image, factor, leavesFirst, writer };
}

/** As weights are written, and with the sign: +.12, −.30, .00. */
function written(value: number): string {
  const size = Math.abs(value).toFixed(2).replace(/^0/, '');
  return size === '.00' ? size : (value > 0 ? '+' : '−') + size;
}
