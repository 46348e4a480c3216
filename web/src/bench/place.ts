// Where one is: the path sentence › token › layer › head › cell, the room, and what rooms remember.
// All of it is the fragment of the address, so that Back, a reload and a shared link restore it.

import { THEMES, type Theme } from '../view/address';

export type Place = {
  room: string;
  model: string | null; // null: the first that there is
  sentence: string | null; // null: the example of the model
  to: string | null; // the language of a translation
  target: string | null; // or the translation itself
  change: string | null; // interventions, as they print
  second: string | null; // the sentence that they call $second
  site: string | null; // null: the one that tells most; so for the others of the path
  head: number | null;
  query: number | null;
  key: number | null;
  theme: Theme;
  lang: string | null; // null: the browser's
  options: Readonly<Record<string, string>>; // of rooms, by names with a dot: look.view
};

export const NOWHERE: Place = {
  room: 'look',
  model: null,
  sentence: null,
  to: null,
  target: null,
  change: null,
  second: null,
  site: null,
  head: null,
  query: null,
  key: null,
  theme: 'auto',
  lang: null,
  options: {},
};

const TEXTS = ['model', 'sentence', 'to', 'target', 'change', 'second', 'site', 'lang'] as const;
const NUMBERS = ['head', 'query', 'key'] as const;

/** A fragment that says where one is; what is as usual is left out. */
export function written(place: Place): string {
  const parts = new URLSearchParams();
  if (place.room !== NOWHERE.room) parts.set('room', place.room);
  for (const name of [...TEXTS, ...NUMBERS]) {
    const value = place[name];
    if (value !== null) parts.set(name, String(value));
  }
  if (place.theme !== NOWHERE.theme) parts.set('theme', place.theme);
  for (const [name, value] of Object.entries(place.options)) parts.set(name, value);
  return parts.toString();
}

/** Where a fragment leads; what it does not say, or says wrongly, is as usual. */
export function read(fragment: string, rooms: readonly string[]): Place {
  const parts = new URLSearchParams(fragment.replace(/^#/, ''));
  const place: Place = { ...NOWHERE, options: {} };
  const room = parts.get('room');
  if (room !== null && rooms.includes(room)) place.room = room;
  for (const name of TEXTS) place[name] = parts.get(name);
  for (const name of NUMBERS) {
    const value = parts.get(name) ?? '';
    place[name] = /^\d{1,9}$/.test(value) ? Number(value) : null;
  }
  place.theme = THEMES.find((each) => each === parts.get('theme')) ?? NOWHERE.theme;
  place.options = Object.fromEntries([...parts].filter(([name]) => name.includes('.')));
  return place;
}

// Another of these is a step that Back undoes; other cells and options replace the address.
const STEPS = ['room', 'model', 'sentence', 'to', 'target', 'change', 'second', 'site', 'head'] as const;

// So are another part of the course, and another reading beside the first.
const STEP_OPTIONS = [
  'learn.open',
  'look.with',
  'look.with.model',
  'look.with.sentence',
  'look.with.to',
  'look.with.change',
  'look.with.site',
  'look.with.head',
] as const;

/** How far one has zoomed into the Atlas: the last part of its view. */
const zoomOf = ({ options }: Place): string | undefined => options['atlas.view']?.split('_')[2];

export const isStep = (from: Place, to: Place): boolean =>
  STEPS.some((name) => from[name] !== to[name]) ||
  STEP_OPTIONS.some((name) => from.options[name] !== to.options[name]) ||
  zoomOf(from) !== zoomOf(to);

const OF_THE_CELL = ['look.with.query', 'look.with.key']; // options that say where one is
const OF_THE_TEXT = ['atlas.view', ...OF_THE_CELL];

/** Options without those that mean nothing in another text, or beside another cell. */
export function forget(options: Place['options'], isOtherText: boolean): Place['options'] {
  const names = isOtherText ? OF_THE_TEXT : OF_THE_CELL;
  return Object.fromEntries(Object.entries(options).filter(([name]) => !names.includes(name)));
}
