// Numbers that the learner has changed, by step and place, as they are written into the address.

export type Edits = ReadonlyMap<string, ReadonlyMap<number, number>>;

const FORM = /^([a-z_]+)\.(\d{1,7})=(-?(?:\d+\.?\d*(?:e[+-]?\d+)?|Infinity))$/;
const MOST = 200;

/** A short name of a row: edits belong to the row whose name stands before them. */
export function nameRow(asked: string): string {
  let hash = 0x811c9dc5; // FNV-1a
  for (const sign of asked) hash = Math.imul(hash ^ sign.codePointAt(0)!, 0x01000193);
  return (hash >>> 0).toString(36);
}

/** "row:dots.3=1.5", of this row; nothing where the edits are those of another. */
export const ofRow = (row: string, text: string): string =>
  text.startsWith(`${row}:`) ? text.slice(row.length + 1) : '';

/** "dots.3=1.5;q.0=-2", as edits; what cannot be read is left out. */
export function readEdits(text: string): Edits {
  const found = new Map<string, Map<number, number>>();
  for (const part of text.split(';').slice(0, MOST)) {
    const match = FORM.exec(part);
    if (match === null) continue;
    const [, step, place, value] = match;
    if (!found.has(step)) found.set(step, new Map());
    found.get(step)!.set(Number(place), Number(value));
  }
  return found;
}

export function writeEdits(edits: Edits): string | null {
  const parts = [...edits].flatMap(([step, places]) =>
    [...places].map(([place, value]) => `${step}.${place}=${value}`),
  );
  return parts.length === 0 ? null : parts.join(';');
}

/** With one number more, or, of null, without it. */
export function withEdit(edits: Edits, step: string, place: number, value: number | null): Edits {
  const places = new Map(edits.get(step) ?? []);
  if (value === null) places.delete(place);
  else places.set(place, value);
  const all = new Map(edits);
  if (places.size === 0) all.delete(step);
  else all.set(step, places);
  return all;
}

/** A number as it is typed: with either minus, ∞ for infinity; null where it is none. */
export function readNumber(text: string): number | null {
  const plain = text.trim().replaceAll('−', '-').replace(',', '.');
  if (/^-?(∞|inf(inity)?)$/i.test(plain)) return plain.startsWith('-') ? -Infinity : Infinity;
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) return null;
  return Number(plain);
}
