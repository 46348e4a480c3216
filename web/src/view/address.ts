// What is chosen, as the fragment of an address: a link, a reload or Back shows the same again.

import { POOLS, SCALES, type Pool, type Scale } from '../trace/picture';

export const VIEWS = ['heat', 'lines', 'statistics'] as const;
export type View = (typeof VIEWS)[number];
export const THEMES = ['auto', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];
export const MOST_LINES = [1, 3, 5, 10];

/** Sites by name and heads by their number in the model: links outlive a page. */
export type Chosen = {
  run: number;
  sequence: number;
  site: string;
  head: number;
  query: number;
  key: number;
  view: View;
  text: boolean;
  scale: Scale | null; // null: what suits the length of the text
  root: boolean | null;
  pool: Pool;
  first: boolean; // whether the first key is shown
  lines: number; // for each query
  shortcuts: boolean;
  theme: Theme;
  lang: string | null; // null: the page's own
};

export type Cell = { query: number; key: number };

const CELL: (keyof Chosen)[] = ['site', 'head', 'query', 'key'];

/** What differs from how the page opens is written; of another cell, all that leads to it. */
export function written(chosen: Chosen, usual: Chosen): string {
  const differs = (name: keyof Chosen) => chosen[name] !== usual[name];
  const isElsewhere = (['run', 'sequence', ...CELL] as const).some(differs);
  const parts = new URLSearchParams();
  for (const [key, value] of Object.entries(chosen)) {
    const name = key as keyof Chosen;
    if (value === null || !(differs(name) || (isElsewhere && CELL.includes(name)))) continue;
    parts.set(name, typeof value === 'boolean' ? String(Number(value)) : String(value));
  }
  return parts.toString();
}

/** What a fragment says; what it does not say, or says wrongly, is as usual. */
export function read(fragment: string, usual: Chosen): Chosen {
  const parts = new URLSearchParams(fragment.replace(/^#/, ''));
  const whole = (name: 'run' | 'sequence' | 'head' | 'query' | 'key'): number =>
    /^\d{1,9}$/.test(parts.get(name) ?? '') ? Number(parts.get(name)) : usual[name];
  const flag = <T extends boolean | null>(name: string, otherwise: T): T | boolean =>
    ({ '0': false, '1': true })[parts.get(name) ?? ''] ?? otherwise;
  const one = <T>(name: string, of: readonly T[], otherwise: T): T =>
    of.find((each) => String(each) === parts.get(name)) ?? otherwise;
  return {
    run: whole('run'),
    sequence: whole('sequence'),
    site: parts.get('site') ?? usual.site,
    head: whole('head'),
    query: whole('query'),
    key: whole('key'),
    view: one('view', VIEWS, usual.view),
    text: flag('text', usual.text),
    scale: one<Scale | null>('scale', SCALES, usual.scale),
    root: flag('root', usual.root),
    pool: one('pool', POOLS, usual.pool),
    first: flag('first', usual.first),
    lines: one('lines', MOST_LINES, usual.lines),
    shortcuts: flag('shortcuts', usual.shortcuts),
    theme: one('theme', THEMES, usual.theme),
    lang: parts.get('lang') ?? usual.lang,
  };
}

const PLACES: (keyof Chosen)[] = ['run', 'sequence', 'site', 'head', 'view', 'text'];
const PAUSE = 300; // milliseconds: browsers refuse an address that changes many times a second

/** Keeps the address up to date. Another head or view is a step back; another cell is none. */
export class Address {
  private timer = 0;
  private last: Chosen;
  private next: Chosen;

  constructor(
    private readonly usual: Chosen,
    onback: (chosen: Chosen) => void,
  ) {
    this.last = this.next = this.now;
    window.addEventListener('popstate', () => {
      window.clearTimeout(this.timer);
      this.last = this.next = this.now;
      onback(this.last);
    });
    window.addEventListener('pagehide', () => this.write());
  }

  get now(): Chosen {
    return read(location.hash, this.usual);
  }

  /** A frame in a notebook has no address of its own. */
  private get isOwn(): boolean {
    return location.protocol !== 'about:';
  }

  set(chosen: Chosen): void {
    this.next = chosen;
    window.clearTimeout(this.timer);
    if (this.isOwn) this.timer = window.setTimeout(() => this.write(), PAUSE);
  }

  private write(): void {
    window.clearTimeout(this.timer);
    const fragment = written(this.next, this.usual);
    if (!this.isOwn || fragment === written(this.last, this.usual)) return;
    const isStep = PLACES.some((name) => this.next[name] !== this.last[name]);
    history[isStep ? 'pushState' : 'replaceState'](null, '', `#${fragment}`);
    this.last = this.next;
  }
}
