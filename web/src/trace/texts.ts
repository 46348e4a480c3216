// How tokens read: whole, on one line, with what is invisible made visible.

import { isolated } from '../view/format';
import type { RunParts, SiteParts } from './wire';

/** The tokens of a site: those that rows read, those that come next, and those of the columns. */
export type Names = {
  queries: string[];
  next: (string | null)[] | null; // null: the model does not predict the next token here
  keys: string[];
  rows: string[]; // what is written beside a row: "Le → chat"
};

const kept = new WeakMap<RunParts, Map<string, Names>>();

/** The same object for sites with the same tokens, as layers have them. */
export function labels(run: RunParts, site: SiteParts, sequence: number): Names {
  const known = kept.get(run) ?? new Map<string, Names>();
  kept.set(run, known);
  const lists = [site.queries, site.next, site.keys].map((each) => each?.[sequence]);
  const found = known.get(lists.join()) ?? made(run, lists);
  known.set(lists.join(), found);
  return found;
}

function made(run: RunParts, lists: (number | undefined)[]): Names {
  const [queries, next, keys] = lists.map((n) =>
    n === undefined ? null : run.names[n].map((name) => (name === null ? null : shown(name))),
  );
  // Each token keeps its own direction: between two Hebrew words, the arrow still points right.
  const rows = queries!.map((read, i) =>
    next?.[i] == null ? read! : `${isolated(read!)} → ${isolated(next[i])}`,
  );
  return { queries: queries as string[], next, keys: keys as string[], rows };
}

/** Whether U+200D stands between two pictures, of which it makes one. */
const joins = (text: string, at: number): boolean =>
  text[at] === '\u200d' &&
  /[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?$/u.test(text.slice(0, at)) &&
  /^\p{Extended_Pictographic}/u.test(text.slice(at + 1));

/** Blanks at the ends as ␣, what cannot be seen as its number, a lone accent on a circle. */
export function shown(token: string): string {
  if (token === '') return '∅';
  const visible = token
    .replace(/^ +| +$/g, (blanks) => '␣'.repeat(blanks.length))
    .replace(/\n/g, '⏎')
    .replace(/\t/g, '⇥')
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (c, at: number, text: string) =>
      joins(text, at) ? c : `U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`,
    );
  return visible.replace(/^\p{M}/u, (mark) => `◌${mark}`);
}

/** Sites by stack and kind, in order: "decoder · self" → their numbers. */
export function groups(sites: SiteParts[]): { title: string; sites: number[] }[] {
  const found = new Map<string, number[]>();
  sites.forEach((site, number) => {
    const words = site.name.split('.');
    const title = words.filter((word) => !/^\d+$/.test(word)).join(' · ');
    found.set(title, [...(found.get(title) ?? []), number]);
  });
  return Array.from(found, ([title, numbers]) => ({ title, sites: numbers }));
}

/** The layer in a site's name, or the name itself. */
export const layer = (name: string): string => name.match(/\.(\d+)(?:\.|$)/)?.[1] ?? name;
