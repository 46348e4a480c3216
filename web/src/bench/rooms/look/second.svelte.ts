// The reading beside the first one: another sentence, model or head, the run with other changes, a
// saved trace. The address names it (look.with.…); what it does not name is as in the first.

import { groups } from '../../../trace/texts';
import type { SiteParts } from '../../../trace/wire';
import type { Bench } from '../../bench.svelte';
import { Run, type ModelEntry, type Reading, type RunAnswer } from '../../runs';
import { isGivenUp } from '../../server';

export const PARTS = ['model', 'sentence', 'to', 'change', 'site', 'head', 'view', 'query', 'key'] as const;
type Part = (typeof PARTS)[number];
export type Spot = { site: SiteParts; head: number };

export class Second {
  run = $state.raw<Run | null>(null); // the last that was read; another may be on its way
  progress = $state<number | null>(null);
  fault = $state<string | null>(null);
  private asking: AbortController | null = null;

  constructor(private readonly bench: Bench) {}

  /** What the address says of it. */
  given(part: Part): string | null {
    return this.bench.place.options[`look.with.${part}`] ?? null;
  }

  set(change: Partial<Record<Part, string | null>>): void {
    const named = Object.entries(change).map(([part, value]) => [`look.with.${part}`, value]);
    this.bench.set(Object.fromEntries(named));
  }

  get model(): ModelEntry | undefined {
    const { bench } = this;
    return bench.models.find(({ name }) => name === this.given('model')) ?? bench.model;
  }

  get sentence(): string {
    return this.given('sentence') ?? (this.bench.sentence || this.model?.example || '');
  }

  get reading(): Reading | null {
    const { bench, model, sentence } = this;
    const first = bench.reading;
    if (model === undefined || first === null) return null;
    const isTrace = model.kind === 'trace';
    const change = isTrace ? null : this.given('change');
    const to = [this.given('to'), first.to].find((code) => model.languages.includes(code ?? ''));
    const isSameText = model.name === first.model && sentence === first.text && (to ?? null) === first.to;
    return {
      model: model.name,
      text: isTrace ? '' : sentence,
      to: to ?? bench.usualLanguage(model),
      // What a change does is seen on the same tokens: it reads what the first has written.
      target: !isSameText ? null : change === first.change ? first.target : this.written(first),
      change,
      second: change === null ? null : bench.place.second,
    };
  }

  /** The translation that the first run has written or was given. */
  private written(first: Reading): string | null {
    const { run } = this.bench;
    if (first.target !== null || run === null) return first.target;
    const isOurs = JSON.stringify(run.reading) === JSON.stringify(first);
    return isOurs ? run.answer.outcome.text : null;
  }

  /** Read it; whatever was on its way is given up. */
  async read(reading: Reading): Promise<void> {
    this.cancel();
    const asking = (this.asking = new AbortController());
    this.progress = 0;
    const onprogress = (share: number) => {
      if (this.asking === asking) this.progress = share;
    };
    const { server } = this.bench;
    try {
      const answer = await server.ask<RunAnswer>('run', reading, { signal: asking.signal, onprogress });
      this.run?.close();
      this.run = new Run(reading, answer, server);
      this.fault = null;
    } catch (error) {
      if (isGivenUp(error)) return;
      this.run?.close();
      this.run = null;
      this.fault = (error as Error).message;
    }
    if (this.asking === asking) this.progress = null;
  }

  cancel(): void {
    this.asking?.abort();
    this.asking = null;
    this.progress = null;
  }

  /** It is no longer shown. */
  close(): void {
    this.cancel();
    this.run?.close();
  }

  /** What is shown of it: as the address says, else as usual. */
  choose(usual: Spot, sites: SiteParts[]): Spot {
    const site = sites.find(({ name }) => name === this.given('site')) ?? usual.site;
    const head = Number(this.given('head') ?? NaN);
    if (site.heads.includes(head)) return { site, head };
    return { site, head: site === usual.site ? usual.head : headBeside(usual, site) };
  }
}

/** What of another run corresponds to a head of one. */
export function counterpartOf(first: Spot, sites: SiteParts[], others: SiteParts[]): Spot {
  const site = counterpart(first.site, sites, others);
  return { site, head: headBeside(first, site) };
}

/** The site of another model that corresponds to one: of the same name, else as deep in its stack. */
function counterpart(site: SiteParts, sites: SiteParts[], others: SiteParts[]): SiteParts {
  const same = others.find(({ name }) => name === site.name);
  if (same !== undefined) return same;
  const own = groups(sites).find((group) => group.sites.includes(sites.indexOf(site)))!;
  const kind = own.title.split(' · ').at(-1);
  const blocks = groups(others);
  const block =
    blocks.find(({ title }) => title === own.title) ??
    [...blocks].reverse().find(({ title }) => title.split(' · ').at(-1) === kind) ??
    blocks[0];
  const depth = own.sites.indexOf(sites.indexOf(site)) / Math.max(1, own.sites.length - 1);
  return others[block.sites[Math.round(depth * (block.sites.length - 1))]];
}

function headBeside({ site, head }: Spot, other: SiteParts): number {
  if (other.heads.includes(head)) return head;
  const share = site.heads.indexOf(head) / Math.max(1, site.heads.length - 1);
  return other.heads[Math.round(share * (other.heads.length - 1))];
}
