// Which shortcut a key press is, whatever the layout of the keyboard.

/**
 * The character that a press types, or null where it means something else. On many layouts [ and ]
 * need AltGr, which systems report as Ctrl and Alt together, or Option, which types characters on
 * a Mac. Where letters are not Latin, the place of the key counts.
 */
export function typed(event: KeyboardEvent, isMac = /Mac/.test(navigator.platform)): string | null {
  const { key } = event;
  if (event.isComposing || event.metaKey || Array.from(key).length !== 1) return null;
  const types = event.getModifierState('AltGraph') || (isMac && event.altKey && !event.ctrlKey);
  if ((event.ctrlKey || event.altKey) && !types) return null;
  const isForeign = /\p{L}/u.test(key) && !/\p{Script=Latin}/u.test(key);
  const place = isForeign ? event.code.match(/^Key([A-Z])$/)?.[1] : undefined;
  return place === undefined ? key : place.toLowerCase();
}

/** Whether a press belongs to something that takes text or choices itself. */
export const isForOthers = (event: KeyboardEvent): boolean =>
  (event.target as Element | null)?.closest?.(
    'input, select, textarea, dialog, [contenteditable=""], [contenteditable="true"]',
  ) != null;

/** Keys, and the text that says what they do. */
export type KeyRow = readonly [keys: string, text: string];

/** Of the view of heads, in the page and in the workbench. */
export const EXPLORER_KEYS: readonly KeyRow[] = [
  ['← ↑ → ↓', 'page.keys.move'],
  ['Home End', 'page.keys.ends'],
  ['PgUp PgDn', 'page.keys.ten'],
  ['Enter', 'page.keys.open'],
  ['+ − 0', 'page.keys.zoom'],
  ['[ ] p n', 'page.keys.head'],
  [', .', 'page.keys.site'],
  ['1 2 3', 'page.keys.view'],
  ['t', 'page.keys.text'],
  ['?', 'page.keys.keys'],
  ['Esc', 'page.keys.close'],
];
