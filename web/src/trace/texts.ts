// How tokens read: whole, on one line, with what is invisible made visible.

import type { RunParts, SiteParts } from './wire';

/** The tokens beside the rows and above the columns of a site; their places where unknown. */
export function labels(run: RunParts, site: SiteParts, sequence: number) {
  const [, , L, S] = site.shape;
  const queries = ofSequence(run.texts[site.queries], sequence);
  const keys = ofSequence(run.texts[site.keys], sequence);
  // Queries that continue a cache are the last L of the S tokens.
  const first = site.queries === site.keys && queries.length >= S && L < S ? S - L : 0;
  return {
    queries: Array.from({ length: L }, (_, i) => shown(queries[first + i] ?? String(first + i))),
    keys: Array.from({ length: S }, (_, i) => shown(keys[i] ?? String(i))),
  };
}

/** One text may serve a whole batch, as where beams translate it. */
function ofSequence(text: string[][] | undefined, sequence: number): string[] {
  if (text === undefined) return [];
  return text[text.length === 1 ? 0 : sequence] ?? [];
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
