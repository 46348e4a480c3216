// Where heads come from: texts as they travel, decoded when a head is first asked for.

import { adds, biasTensors } from '../trace/biases';
import { Head } from '../trace/head';
import { allows, maskTensors } from '../trace/masks';
import { dense, Operand, unpackTensor, type Dense, type Tensor } from '../trace/numbers';
import type { DifferenceParts, PageParts, SiteOperands, SiteParts, TensorParts } from '../trace/wire';
import type { Choice, Look } from './messages';

type Site = { q: Operand; k: Operand; v: Operand; difference: DifferenceParts | null };
export type Runs = Pick<PageParts, 'runs'>;

export class Store {
  private tensors: Tensor[] = [];
  private readonly texts = new Map<string, string>();
  private readonly sites = new Map<string, Site>();
  private readonly given = new Set<number>();

  constructor(private readonly page: Runs) {}

  addTensors(text: string): void {
    this.tensors = (JSON.parse(text) as TensorParts).map(unpackTensor);
  }

  addSite(run: number, site: number, text: string): void {
    this.texts.set(`${run} ${site}`, text);
  }

  head({ run, site: number, sequence, head }: Choice): Head {
    const site = this.page.runs[run].sites[number];
    const { q, k, v } = this.siteOf(`${run} ${number}`, site);
    const shared = Math.floor(head / (site.shape[1] / site.n_kv_heads));
    return headOf(site, { sequence, head }, this.tensors.map(dense), {
      q: q.head(sequence, head),
      k: k.head(sequence, shared),
      v: v.head(sequence, shared),
    });
  }

  /** How many products of two numbers the scores of a head are made of. */
  countProducts({ run, site }: Choice): number {
    const { shape, head_dim } = this.page.runs[run].sites[site];
    return shape[2] * shape[3] * head_dim;
  }

  /** How far a site lies from what the model computed. */
  difference({ run, site }: Choice): DifferenceParts | null {
    return this.siteOf(`${run} ${site}`, this.page.runs[run].sites[site]).difference;
  }

  /** The tensors of a site's mask and bias, each given out once. */
  newTensors({ run, site: number }: Choice): [number, Tensor][] {
    const site = this.page.runs[run].sites[number];
    const used = new Set([...maskTensors(site.mask), ...biasTensors(site.bias)]);
    const fresh = [...used].filter((n) => !this.given.has(n));
    for (const n of fresh) this.given.add(n);
    return fresh.map((n) => [n, this.tensors[n]]);
  }

  private siteOf(name: string, site: SiteParts): Site {
    const found = this.sites.get(name);
    if (found !== undefined) return found;
    const [, H, L, S] = site.shape;
    const K = site.n_kv_heads;
    const { q, k, v, difference } = JSON.parse(this.texts.get(name)!) as SiteOperands;
    this.texts.delete(name);
    const made = {
      q: new Operand(q, H, L, site.head_dim),
      k: new Operand(k, K, S, site.head_dim),
      v: new Operand(v, K, S, site.value_dim),
      difference,
    };
    this.sites.set(name, made);
    return made;
  }
}

/** A head from its operands and what its site says of masks, biases and scale. */
export function headOf(
  site: SiteParts,
  { sequence, head }: { sequence: number; head: number },
  tensors: Dense[],
  { q, k, v }: NonNullable<Look['operands']>,
): Head {
  const [, , L, S] = site.shape;
  const at = { sequence, head, L, S };
  const scoring = {
    allows: allows(site.mask, at, tensors),
    adds: adds(site.bias, at, tensors),
    scale: site.scale,
    softcap: site.softcap,
  };
  const { query_positions: given } = site;
  const positions = typeof given === 'number' ? Array.from({ length: L }, (_, i) => given + i) : given;
  return new Head(q, k, v, scoring, positions);
}
