// The state of the workbench: where one is, and the run that is there. Rooms read it and say `go`.

import { Run, type ModelEntry, type Reading, type RunAnswer } from './runs';
import { isGivenUp, type Asking, type Server } from './server';
import { forget, isStep, read, written, type Place } from './place';
import type { RoomView } from './exports/views.svelte';
import type { SiteParts } from '../trace/wire';
import type { Cell } from '../view/address';
import type { Speech } from '../view/speech.svelte';

/** A cell of a site; a key of null is the strongest of the row. */
export type At = { site: SiteParts; head: number; query: number; key: number | null };

const PAUSE = 300; // milliseconds: browsers refuse an address that changes many times a second

export class Bench {
  place = $state.raw<Place>()!;
  models = $state.raw<ModelEntry[]>([]);
  run = $state.raw<Run | null>(null); // the last that was read; another may be on its way
  progress = $state<number | null>(null); // of the run on its way, 0 to 1
  fault = $state<string | null>(null); // why there is none, in a sentence
  trouble = $state<string | null>(null); // what failed and may succeed when it is tried again
  tries = $state(0); // how often that was asked for: rooms begin anew
  colours = $state('light'); // of the scheme: pictures are drawn anew where it changes

  view = $state.raw<RoomView | null>(null); // what the room shows, where it can be exported

  private timer = 0;
  private saved: Place;
  private asking: AbortController | null = null;

  constructor(
    readonly server: Server,
    readonly speech: Speech,
    rooms: readonly string[],
  ) {
    this.place = this.saved = read(location.hash, rooms);
    server.onfail = ({ message }) => (this.trouble = message);
    const back = () => {
      clearTimeout(this.timer);
      this.place = this.saved = read(location.hash, rooms);
    };
    window.addEventListener('popstate', back);
    window.addEventListener('hashchange', back);
    window.addEventListener('pagehide', () => this.save());
  }

  /** Another place; what is not named stays, and a new text forgets the cell of the old one. */
  go(change: Partial<Place>): void {
    const isOther = (['model', 'sentence', 'to', 'target'] as const).some((name) => name in change);
    const isMoved = isOther || 'query' in change || 'key' in change;
    const options = isMoved ? forget(this.place.options, isOther) : this.place.options;
    const nowhere = isOther ? { site: null, head: null, query: null, key: null } : {};
    const carried = isOther ? {} : this.carry(change.site ?? null);
    const place = { ...this.place, ...nowhere, ...carried, options, ...change };
    if (written(place) === written(this.place)) return;
    if (place.room !== this.place.room) this.trouble = null;
    this.place = place;
    clearTimeout(this.timer);
    if (isStep(this.saved, place)) this.save();
    else this.timer = window.setTimeout(() => this.save(), PAUSE);
  }

  /** The cell at another site: its query where that reads the same text, its key where both do. */
  private carry(name: string | null): Partial<Place> {
    const [from, to] = [this.at, this.run?.parts.sites.find((each) => each.name === name)];
    if (from === null || to === undefined || to === from.site) return {};
    const hasQuery = from.site.queries[0] === to.queries[0];
    const hasKey = hasQuery && from.site.keys[0] === to.keys[0];
    return { query: hasQuery ? from.query : null, key: hasKey ? from.key : null };
  }

  private save(): void {
    clearTimeout(this.timer);
    const fragment = written(this.place);
    if (fragment === written(this.saved)) return;
    history[isStep(this.saved, this.place) ? 'pushState' : 'replaceState'](null, '', `#${fragment}`);
    this.saved = this.place;
  }

  /** A setting of a room, by its name in the address: look.view. */
  option(name: string, usual: string): string {
    return this.place.options[name] ?? usual;
  }

  /** Change settings of a room; null is as usual. */
  set(change: Record<string, string | null>): void {
    const options = { ...this.place.options };
    for (const [name, value] of Object.entries(change)) {
      if (value === null) delete options[name];
      else options[name] = value;
    }
    this.go({ options });
  }

  get model(): ModelEntry | undefined {
    return this.models.find(({ name }) => name === this.place.model) ?? this.models[0];
  }

  get sentence(): string {
    return this.place.sentence ?? this.model?.example ?? '';
  }

  /** Where one is in the present run; what the address does not say is where the run opens. */
  get at(): At | null {
    if (this.run === null) return null;
    const { parts, answer } = this.run;
    const { opening } = answer.page;
    const opened = parts.sites[opening.site];
    const site = parts.sites.find(({ name }) => name === this.place.site) ?? opened;
    const [, , L, S] = site.shape;
    const isOpened = site === opened;
    const { head, query, key } = this.place;
    const usual = isOpened && head === null ? opened.heads[opening.head] : site.heads[0];
    return {
      site,
      head: head !== null && site.heads.includes(head) ? head : usual,
      query: Math.min(query ?? (isOpened ? opening.query : 0), L - 1),
      key: key === null ? (query === null && isOpened ? opening.key : null) : Math.min(key, S - 1),
    };
  }

  /** The cell that is shown, where the address did not name one. */
  settle(cell: Cell): void {
    const { query, key } = this.place;
    if (query !== null && key === null) this.go(cell);
  }

  /** What every question names; null until there is something to read. */
  get reading(): Reading | null {
    const { model, sentence } = this;
    if (model === undefined || (sentence.trim() === '' && model.kind !== 'trace')) return null;
    const { target, change, second } = this.place;
    const to = model.languages.includes(this.place.to ?? '') ? this.place.to : null;
    return {
      model: model.name,
      text: sentence,
      to: to ?? (target === null ? this.usualLanguage(model) : null),
      target,
      change,
      second: change === null ? null : second,
    };
  }

  /** The reader's own language, unless it is the one translated from. */
  usualLanguage({ languages }: ModelEntry): string | null {
    return languages.find((code) => code === this.speech.code) ?? languages.at(-1) ?? null;
  }

  /** What a job answers about the present reading. */
  ask<T>(job: string, extra: object = {}, asking: Asking = {}): Promise<T> {
    return this.server.ask<T>(job, { ...this.reading, ...extra }, asking);
  }

  /** What the address names and this server or this run does not have, in order. */
  get missing(): { name: 'model' | 'site' | 'head'; value: string; instead: string } | null {
    const { model, site, head } = this.place;
    if (this.models.length > 0 && model !== null && model !== this.model!.name) {
      return { name: 'model', value: model, instead: this.model!.name };
    }
    const { at } = this;
    if (at === null || this.progress !== null || this.fault !== null) return null;
    if (site !== null && site !== at.site.name) {
      return { name: 'site', value: site, instead: at.site.name };
    }
    if (head === null || head === at.head) return null;
    return { name: 'head', value: String(head), instead: String(at.head) };
  }

  /** Ask anew for everything that is shown. */
  async again(): Promise<void> {
    this.trouble = this.fault = null;
    if (this.models.length === 0) await this.open();
    else if (this.reading !== null) await this.read(this.reading);
    this.tries += 1;
  }

  async open(): Promise<void> {
    try {
      this.models = await this.server.get<ModelEntry[]>('/api/models');
      this.fault = null;
    } catch (error) {
      this.fault = (error as Error).message;
    }
  }

  /** Read the present text; whatever was on its way is given up. */
  async read(reading: Reading): Promise<void> {
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    this.progress = 0;
    const onprogress = (share: number) => (this.progress = share);
    try {
      const answer = await this.server.ask<RunAnswer>('run', reading, {
        signal: asking.signal,
        onprogress,
      });
      this.run?.close();
      this.run = new Run(reading, answer, this.server);
      this.fault = null;
    } catch (error) {
      if (isGivenUp(error)) return;
      this.fault = (error as Error).message;
    }
    if (this.asking === asking) this.progress = null;
  }

  /** Give up what is on its way. */
  cancel(): void {
    this.asking?.abort();
    this.progress = null;
  }
}
