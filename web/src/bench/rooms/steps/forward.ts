// One row of one head, step by step, in float64: as recorded, and after an edit recomputed below it.

import {
  ACTIVATIONS,
  columnOf,
  dot,
  isWhole,
  maybe,
  normalise,
  plus,
  project,
  rotate,
  rowOf,
  unpack,
  unpackMatrix,
  unpackNorm,
  type Matrix,
  type Norm,
  type Numbers,
  type Rotation,
} from './algebra';
import type { Edits } from './edits';
import type { FeedForwardAnswer, StepsAnswer } from './wire';

/** What was sent, decoded once. */
export type Operands = {
  answer: StepsAnswer;
  S: number;
  D: number;
  E: number;
  own: number; // where the query's own key is among those sent; −1: nowhere
  norm: Norm | null;
  afterNorm: Norm | null;
  qNorm: Norm | null;
  kNorm: Norm | null;
  wq: Matrix | null;
  wk: Matrix | null;
  wv: Matrix | null;
  wo: Matrix | null;
  rotation: Rotation | null;
  inputs: Numbers | null;
  bias: Numbers | null;
  rest: Numbers | null;
  others: Numbers | null; // the mean value of the keys that were not sent
  q: Numbers;
  k: Numbers;
  v: Numbers;
};

export type Matrices = { up: Matrix; down: Matrix };

/** The result of a step. */
export type Stage = {
  values: Numbers;
  width: number; // of a row: D for keys; its length for a vector
  isDirty: boolean; // something above was edited, or it
  isHeld: boolean; // something above was edited, and it cannot be recomputed
};

export type Chain = {
  stages: ReadonlyMap<string, Stage>;
  q: Numbers; // that the scores are made of
  scores: Numbers;
  largest: number;
  total: number;
  others: number; // the weight of the keys that were not sent
  gate: Numbers | null;
};

export function decode(answer: StepsAnswer): Operands {
  const [S, D] = answer.k.shape;
  const { rotation } = answer;
  return {
    answer,
    S,
    D,
    E: answer.v.shape[1],
    own: answer.kind === 'self' ? answer.keys.indexOf(answer.query) : -1,
    norm: unpackNorm(answer.norm),
    afterNorm: unpackNorm(answer.after_norm),
    qNorm: unpackNorm(answer.q_norm),
    kNorm: unpackNorm(answer.k_norm),
    wq: unpackMatrix(answer.w_q),
    wk: unpackMatrix(answer.w_k),
    wv: unpackMatrix(answer.w_v),
    wo: unpackMatrix(answer.w_o),
    rotation: rotation == null ? null : { cos: unpack(rotation.cos), sin: unpack(rotation.sin), layout: rotation.layout },
    inputs: maybe(answer.inputs),
    bias: maybe(answer.bias),
    rest: maybe(answer.rest),
    others: maybe(answer.others?.out),
    q: unpack(answer.q),
    k: unpack(answer.k),
    v: unpack(answer.v),
  };
}

export const decodeMatrices = (answer: FeedForwardAnswer): Matrices => ({
  up: unpackMatrix(answer.up)!,
  down: unpackMatrix(answer.down)!,
});

/** Every step's numbers: the recorded ones, and below an edit those that follow from it. */
export function compute(given: Operands, edits: Edits, matrices: Matrices | null = null): Chain {
  return new Computation(given, edits, matrices).run();
}

class Computation {
  private readonly stages = new Map<string, Stage>();
  private readonly changed: Set<string>;

  constructor(
    private readonly given: Operands,
    private readonly edits: Edits,
    private readonly matrices: Matrices | null,
  ) {
    const { steps } = given.answer;
    this.changed = new Set(steps.filter((each) => each.is_changed).map(({ id }) => id));
  }

  run(): Chain {
    const { given } = this;
    const q = given.answer.x == null ? this.put('q', [], given.q, null) : this.read();
    if (given.answer.x == null) {
      this.put('keys', [], given.k, null, given.D);
      this.put('values', [], given.v, null, given.E);
    }
    const attended = this.attend(q);
    if (given.answer.x != null) this.write();
    return { stages: this.stages, q: this.values(q), gate: this.gate(), ...attended };
  }

  private values = (id: string): Numbers => this.stages.get(id)!.values;

  /** A step: its recorded numbers, unless something above was edited; then the edits of its own. */
  private put(
    id: string,
    from: string[],
    recorded: Numbers | null,
    again: (() => Numbers) | null,
    width?: number,
  ): string {
    const isBelow = from.some((each) => this.stages.get(each)?.isDirty);
    const canCompute = again !== null && !(recorded !== null && this.changed.has(id));
    const isHeld = isBelow && !canCompute;
    let values = recorded !== null && (!isBelow || isHeld) ? recorded : again!();
    const own = this.edits.get(id);
    if (own !== undefined) {
      values = values.slice();
      for (const [place, value] of own) if (place < values.length) values[place] = value;
    }
    const isDirty = (isBelow && !isHeld) || own !== undefined;
    this.stages.set(id, { values, width: width ?? values.length, isDirty, isHeld });
    return id;
  }

  /** From the stream to q, k and v; returns the step that gives q. */
  private read(): string {
    const { given, values } = this;
    const { answer, norm, qNorm, kNorm, rotation, wq, wk, wv, own, D, E } = given;
    let read = this.put('x', [], unpack(answer.x!), null);
    if (norm !== null) read = this.put('norm', ['x'], null, () => normalise(norm, values('x')));
    const isLast = (step: 'project' | 'head_norm') =>
      rotation === null && (step === 'head_norm' || qNorm === null);
    let q = this.put(
      'project',
      [read],
      isLast('project') ? given.q : unpack(answer.projected!),
      isWhole(wq) ? () => project(wq, values(read)) : null,
    );
    if (qNorm !== null) {
      const recorded = isLast('head_norm') ? given.q : null;
      q = this.put('head_norm', [q], recorded, () => normalise(qNorm, values('project')));
    }
    if (rotation !== null) {
      const before = q;
      q = this.put('rotate', [before], given.q, () => rotate(rotation, values(before)));
    }
    // What is edited at the query's position also changes the key and the value of its own token.
    const ownKey = (matrix: Matrix) => {
      let key = project(matrix, values(read));
      if (kNorm !== null) key = normalise(kNorm, key);
      return rotation === null ? key : rotate(rotation, key);
    };
    const above = own >= 0 ? [read] : [];
    this.put('keys', above, given.k, isWhole(wk) ? () => withRow(given.k, own, ownKey(wk)) : null, D);
    this.put(
      'values',
      above,
      given.v,
      isWhole(wv) ? () => withRow(given.v, own, project(wv, values(read))) : null,
      E,
    );
    return q;
  }

  /** From q, k and v to the weighted sum. */
  private attend(q: string) {
    const { given, values } = this;
    const { answer, S, D, E, bias } = given;
    this.put('dots', [q, 'keys'], null, () =>
      Float64Array.from({ length: S }, (_, j) => dot(values(q), rowOf(values('keys'), D, j))),
    );
    this.put('scale', ['dots'], null, () => values('dots').map((each) => each * answer.scale));
    let scores = 'scale';
    const { softcap } = answer;
    const next = (id: string, map: (each: number, j: number) => number) => {
      const before = scores;
      scores = this.put(id, [before], null, () => values(before).map(map));
    };
    if (softcap !== null) next('softcap', (each) => softcap * Math.tanh(each / softcap));
    if (bias !== null) next('bias', (each, j) => each + bias[j]);
    const hasMask = answer.steps.some(({ id }) => id === 'mask');
    if (hasMask) next('mask', (each, j) => (answer.allowed[j] ? each : -Infinity));
    const rest = answer.others?.lse ?? -Infinity;
    const largest = values(scores).reduce((a, b) => Math.max(a, b), rest);
    const shift = (each: number) => (largest === -Infinity ? 0 : Math.exp(each - largest));
    this.put('exp', [scores], null, () => values(scores).map(shift));
    const left = shift(rest);
    const total = values('exp').reduce((a, b) => a + b, left);
    this.put('weights', ['exp'], null, () =>
      values('exp').map((each) => (total === 0 ? 0 : each / total)),
    );
    const others = total === 0 ? 0 : left / total;
    this.put('sum', ['weights', 'values'], null, () =>
      Float64Array.from(
        { length: E },
        (_, i) =>
          dot(values('weights'), columnOf(values('values'), E, i)) + others * (given.others?.[i] ?? 0),
      ),
    );
    return { scores: values(scores), largest, total, others };
  }

  /** From the head's output to the stream, and the feed-forward network. */
  private write(): void {
    const { given, values } = this;
    const { answer, wo, rest, afterNorm, E } = given;
    const outs = unpack(answer.outs!);
    const first = answer.head * E;
    this.put('merge', ['sum'], null, () => {
      const merged = outs.slice();
      merged.set(values('sum'), first);
      return merged;
    });
    const own = () => values('merge').subarray(first, first + E);
    this.put(
      'output',
      ['merge'],
      unpack(answer.added!),
      isWhole(wo) ? () => plus(project(wo, own()), rest!) : null,
    );
    let stream = this.put('residual', ['x', 'output'], null, () => plus(values('x'), values('output')));
    if (afterNorm !== null) {
      stream = this.put('after_norm', [stream], null, () => normalise(afterNorm, values('residual')));
    }
    if (answer.feed_forward != null) this.feed(stream);
  }

  private feed(stream: string): void {
    const { values, matrices } = this;
    const network = this.given.answer.feed_forward!;
    const norm = unpackNorm(network.norm);
    const after = unpackNorm(network.after_norm);
    let read = stream;
    if (norm !== null) {
      read = this.put('ff_norm', [stream], unpack(network.read), () => normalise(norm, values(stream)));
    }
    const F = network.hidden.shape[0];
    const isGated = network.gate !== null;
    const up = unpack(network.up);
    this.put('ff_up', [read], up, matrices && (() => project(matrices.up, values(read)).subarray(isGated ? F : 0)));
    const act = ACTIVATIONS[network.activation];
    this.put('ff_hidden', ['ff_up', read], unpack(network.hidden), () => {
      const gate = this.gate();
      return values('ff_up').map((each, i) => (gate === null ? act(each) : act(gate[i]) * each));
    });
    const down = matrices && (() => project(matrices.down, values('ff_hidden')));
    this.put('ff_down', ['ff_hidden'], unpack(network.added), down);
    this.put('ff_residual', [stream, 'ff_down'], null, () => plus(values(stream), values('ff_down')));
    if (after !== null) {
      this.put('ff_after_norm', ['ff_residual'], null, () => normalise(after, values('ff_residual')));
    }
  }

  /** What gates the hidden numbers, before its activation. */
  private gate(): Numbers | null {
    const network = this.given.answer.feed_forward;
    if (network?.gate == null) return null;
    const read = this.stages.get('ff_norm') ?? this.stages.get('after_norm') ?? this.stages.get('residual');
    const F = network.hidden.shape[0];
    if (!read?.isDirty || this.matrices === null) return unpack(network.gate);
    return project(this.matrices.up, read.values).subarray(0, F);
  }
}

function withRow(values: Numbers, row: number, given: Numbers): Numbers {
  const copy = values.slice();
  copy.set(given, row * given.length);
  return copy;
}
