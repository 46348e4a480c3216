// Where heads come from. Components know this interface; a page carries the data in itself,
// another source may ask a server.

import { adds } from './biases';
import { Head } from './head';
import { allows } from './masks';
import { dense, Operand, type Dense } from './numbers';
import type { RunParts, SiteParts, TraceParts } from './wire';

export type Choice = { run: number; site: number; sequence: number; head: number };

export interface Source {
  readonly model: Record<string, unknown>;
  readonly runs: RunParts[];
  head(choice: Choice): Head;
}

const MOST_CELLS = 1 << 25; // of the heads that are kept

/** A trace that is there as a whole: decoded where one looks, the last heads kept. */
export class WholeSource implements Source {
  readonly model: Record<string, unknown>;
  readonly runs: RunParts[];
  private readonly tensors: Dense[];
  private readonly operands = new Map<SiteParts, { q: Operand; k: Operand; v: Operand }>();
  private readonly kept = new Map<string, Head>();

  constructor(parts: TraceParts) {
    this.model = parts.model;
    this.runs = parts.runs;
    this.tensors = parts.tensors.map(dense);
  }

  head(choice: Choice): Head {
    const name = [choice.run, choice.site, choice.sequence, choice.head].join();
    const found = this.kept.get(name) ?? this.made(choice);
    this.kept.delete(name); // the one asked for last goes last
    this.kept.set(name, found);
    this.forget();
    return found;
  }

  private forget() {
    let cells = 0;
    for (const each of this.kept.values()) cells += each.L * each.S;
    for (const [name, each] of this.kept) {
      if (cells <= MOST_CELLS || this.kept.size === 1) return;
      this.kept.delete(name);
      cells -= each.L * each.S;
    }
  }

  private made({ run, site: number, sequence, head }: Choice): Head {
    const site = this.runs[run].sites[number];
    const [, H, L, S] = site.shape;
    const { q, k, v } = this.operandsOf(site);
    const shared = Math.floor(head / (H / site.n_kv_heads));
    const at = { sequence, head, L, S };
    const scoring = {
      allows: allows(site.mask, at, this.tensors),
      adds: adds(site.bias, at, this.tensors),
      scale: site.scale,
      softcap: site.softcap,
    };
    const operands = [q.head(sequence, head), k.head(sequence, shared), v.head(sequence, shared)];
    return new Head(operands[0], operands[1], operands[2], scoring, site.stands);
  }

  private operandsOf(site: SiteParts) {
    const found = this.operands.get(site);
    if (found !== undefined) return found;
    const [, H, L, S] = site.shape;
    const K = site.n_kv_heads;
    const made = {
      q: new Operand(site.q, H, L, site.head_dim),
      k: new Operand(site.k, K, S, site.head_dim),
      v: new Operand(site.v, K, S, site.value_dim),
    };
    this.operands.set(site, made);
    return made;
  }
}
