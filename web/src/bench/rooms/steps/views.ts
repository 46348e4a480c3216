// What each step shows: a vector, a number for each key, or a vector for each key; and its operands.

import type { Numbers } from './algebra';
import { computeBack, jacobian, WAY_BACK, type Gradients } from './backward';
import type { Edits } from './edits';
import type { Chain, Operands, Stage } from './forward';

export type Kind = 'vector' | 'key' | 'rows';

const OF_KEYS = ['dots', 'scale', 'softcap', 'bias', 'mask', 'exp', 'weights', 'd_weights', 'd_scores', 'd_dots'];
const OF_ROWS = ['keys', 'values', 'd_values', 'd_keys', 'jacobian'];

export const kindOf = (step: string): Kind =>
  OF_KEYS.includes(step) ? 'key' : OF_ROWS.includes(step) ? 'rows' : 'vector';

/** What is written above a column of the table of keys. */
export const TITLES: Record<string, string> = {
  dots: 'q · k',
  scale: '· scale',
  softcap: 'softcap',
  bias: '+ bias',
  mask: 'mask',
  exp: 'exp',
  weights: 'w',
  d_weights: 'dL/dw',
  d_scores: 'dL/dscore',
  d_dots: 'dL/d(q·k)',
};

/** The symbol of a step's result. */
export const SYMBOLS: Record<string, string> = {
  x: 'x', norm: 'n', project: 'q', head_norm: 'q', rotate: 'q', q: 'q', keys: 'k', values: 'v', dots: 'q·k',
  scale: 'score', softcap: 'score', bias: 'score', mask: 'score', exp: 'e', weights: 'w', sum: 'out',
  merge: 'merged', output: 'y', residual: 'x', after_norm: 'x', ff_norm: 'n', ff_up: 'u', ff_hidden: 'h',
  ff_down: 'y', ff_residual: 'x', ff_after_norm: 'x', d_out: 'dL/dout', d_values: 'dL/dv', d_weights: 'dL/dw',
  jacobian: 'J', d_scores: 'dL/dscore', d_dots: 'dL/d(q·k)', d_q: 'dL/dq', d_keys: 'dL/dk',
}; // prettier-ignore

/** The formulas of the way back. */
export const BACK: Record<string, string> = {
  d_out: 'g = dL/dout',
  d_values: 'dL/dv_j = w_j g',
  d_weights: 'dL/dw_j = g · v_j',
  jacobian: 'J = diag(w) − w wᵀ',
  d_scores: 'dL/ds = J dL/dw,  dL/ds_j = w_j (dL/dw_j − Σ_i w_i dL/dw_i)',
  d_dots: 'dL/d(q·k_j) = scale · dL/ds_j',
  d_q: 'dL/dq = Σ_j dL/d(q·k_j) k_j',
  d_keys: 'dL/dk_j = dL/d(q·k_j) q',
};

/** The steps whose results are drawn as the operands of a step. */
export function operandsOf(step: string, chain: Chain): string[] {
  const has = (id: string) => chain.stages.has(id);
  const first = (...ids: string[]) => ids.find(has) ?? '';
  const q = first('rotate', 'head_norm', 'project', 'q');
  const stream = first('after_norm', 'residual');
  const found: Record<string, string[]> = {
    norm: ['x'],
    project: [first('norm', 'x')],
    head_norm: ['project'],
    rotate: [first('head_norm', 'project')],
    dots: [q, 'keys'],
    sum: ['values'],
    merge: ['sum'],
    output: ['merge'],
    residual: ['x', 'output'],
    after_norm: ['residual'],
    ff_norm: [stream],
    ff_up: [first('ff_norm', stream)],
    ff_hidden: ['ff_up'],
    ff_down: ['ff_hidden'],
    ff_residual: [stream, 'ff_down'],
    ff_after_norm: ['ff_residual'],
    d_values: ['d_out'],
    d_weights: ['d_out', 'values'],
    d_q: ['keys'],
    d_keys: [q],
  };
  return found[step] ?? [];
}

/** The gradient that the way back begins with: what was typed, or one-hot at the first number. */
export function gradientOf(given: Operands, edits: Edits): Numbers {
  const out = new Float64Array(given.E);
  const typed = edits.get('d_out');
  if (typed === undefined) out[0] = 1;
  else for (const [i, value] of typed) if (i < out.length) out[i] = value;
  return out;
}

/** Keys of a row whose Jacobian is written out: beyond, it would be a matrix that nobody reads. */
export const MOST_JACOBIAN = 256;

/** The results of the way back, in the form of steps. */
export function backStages(given: Operands, chain: Chain, edits: Edits): { back: Gradients; stages: Map<string, Stage> } {
  const back = computeBack(given, chain, gradientOf(given, edits));
  const { S, D, E } = given;
  const weights = chain.stages.get('weights')!.values;
  const all: Record<(typeof WAY_BACK)[number], [Numbers, number]> = {
    d_out: [back.out, E],
    d_values: [back.values, E],
    d_weights: [back.weights, S],
    jacobian: [Float64Array.from({ length: S <= MOST_JACOBIAN ? S * S : 0 }, (_, n) => jacobian(weights, Math.floor(n / S), n % S)), S],
    d_scores: [back.scores, S],
    d_dots: [back.dots, S],
    d_q: [back.q, D],
    d_keys: [back.keys, D],
  };
  const stages = new Map<string, Stage>();
  for (const [id, [values, width]] of Object.entries(all)) {
    if (values.length > 0) stages.set(id, { values, width, isDirty: false, isHeld: false });
  }
  return { back, stages };
}
