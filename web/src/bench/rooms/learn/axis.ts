// From a number to its place along an axis, linear or logarithmic, and the numbers written there.

export type Scale = { at: (value: number) => number; ticks: number[] };

/** The limits: those given, else the range of the numbers, widened if it is empty. */
export function limits(
  axis: { log: boolean; least: number | null; most: number | null },
  values: number[],
): [low: number, high: number] {
  const kept = axis.log ? values.filter((value) => value > 0) : values;
  const low = axis.least ?? (kept.length > 0 ? Math.min(...kept) : 1);
  const high = axis.most ?? (kept.length > 0 ? Math.max(...kept) : low);
  if (high > low) return [low, high];
  return axis.log ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
}

/** Places 0 … 1 along an axis, and about five ticks. */
export function scale(low: number, high: number, isLog: boolean): Scale {
  if (!isLog) {
    const room = high - low;
    return { at: (value) => (value - low) / room, ticks: linearTicks(low, high) };
  }
  const from = Math.log10(low);
  const room = Math.log10(high) - from;
  const at = (value: number) => (Math.log10(Math.max(value, low)) - from) / room;
  return { at, ticks: logTicks(low, high) };
}

function linearTicks(low: number, high: number): number[] {
  const rough = (high - low) / 4;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * ([1, 2, 5, 10].find((each) => each * size >= rough) ?? 10);
  const found: number[] = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n++)
    found.push(Number((n * step).toPrecision(12)));
  return found;
}

function logTicks(low: number, high: number): number[] {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first) / 5));
  const found: number[] = [];
  for (let n = first; n <= last; n += every) found.push(10 ** n);
  // Less than two decades: the ends say more than a single power of ten.
  return found.length >= 2 ? found : [low, high];
}
