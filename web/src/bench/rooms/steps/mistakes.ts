// A number computed by hand: whether it is right, and if not, which known mistake gives it.

import { columnOf, dot, rowOf, statistics, type Numbers } from './algebra';
import { jacobian, type Gradients } from './backward';
import type { Chain, Operands } from './forward';

export type Verdict = { isRight: boolean; mistake: string | null };

const SHARE = 0.01;

/** Right is within 1 %, or as exact as it was typed, with two decimals or more. */
export function isNear(text: string, typed: number, truth: number): boolean {
  if (typed === truth) return true;
  if (!Number.isFinite(typed) || !Number.isFinite(truth)) return false;
  const decimals = /[.,](\d+)/.exec(text)?.[1].length ?? 0;
  const rounding = decimals >= 2 && !/e/i.test(text) ? 0.5000001 * 10 ** -decimals : 0;
  return Math.abs(typed - truth) <= Math.max(SHARE * Math.abs(truth), rounding);
}

/** What a wrong number would be right for; the name of the first mistake that gives it. */
export function judge(text: string, typed: number, truth: number, known: Mistakes): Verdict {
  if (isNear(text, typed, truth)) return { isRight: true, mistake: null };
  const found = [...known, ['sign', -truth] as const].find(
    ([, wrong]) => Number.isNaN(wrong) === false && isNear(text, typed, wrong),
  );
  return { isRight: false, mistake: found?.[0] ?? null };
}

export type Mistakes = (readonly [name: string, wrong: number])[];

/** The mistakes that can be made at a place of a step, and the number that each gives. */
export function mistakesAt(given: Operands, chain: Chain, step: string, place: number): Mistakes {
  const find = FORWARD[step];
  return find === undefined ? [] : find(new Values(given, chain), place);
}

export function mistakesBack(
  given: Operands,
  chain: Chain,
  back: Gradients,
  step: string,
  place: number,
): Mistakes {
  const find = BACK[step];
  return find === undefined ? [] : find(new Values(given, chain), back, place);
}

class Values {
  readonly isAllowed: boolean[];
  constructor(
    readonly given: Operands,
    readonly chain: Chain,
  ) {
    this.isAllowed = given.answer.allowed;
  }
  at = (id: string): Numbers => this.chain.stages.get(id)!.values;
  has = (id: string): boolean => this.chain.stages.has(id);
  /** The scores before the mask. */
  get unmasked(): Numbers {
    const last = ['bias', 'softcap', 'scale'].find((id) => this.has(id))!;
    return this.at(last);
  }
  get unscaled(): Numbers {
    return this.at('dots').map((each, j) => (this.isAllowed[j] ? each : -Infinity));
  }
  get strongest(): number {
    const weights = this.at('weights');
    return weights.indexOf(weights.reduce((a, b) => Math.max(a, b), 0));
  }
  get visible(): number {
    return this.isAllowed.filter(Boolean).length;
  }
}

function softmax(scores: Numbers): Numbers {
  const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const exps = scores.map((each) => Math.exp(each - largest));
  const total = exps.reduce((a, b) => a + b, 0);
  return exps.map((each) => each / total);
}

type Finder = (values: Values, place: number) => Mistakes;

const normMistakes =
  (from: (values: Values) => string, which: 'norm' | 'afterNorm'): Finder =>
  (values, i) => {
    const norm = values.given[which];
    if (norm === null) return [];
    const x = values.at(from(values));
    const { mean, size } = statistics(norm, x);
    const gain = norm.gain?.[i] ?? 1;
    const bias = norm.bias?.[i] ?? 0;
    return [
      ['norm_skipped', x[i]],
      ['not_centred', norm.isCentred ? (x[i] / size) * gain + bias : NaN],
      ['not_divided_by_size', (x[i] - mean) * gain + bias],
      ['gain_skipped', (x[i] - mean) / size],
      ['bias_skipped', norm.bias === null ? NaN : ((x[i] - mean) / size) * gain],
    ];
  };

const weighted = (weights: Numbers, values: Values, i: number): number =>
  dot(weights, columnOf(values.at('values'), values.given.E, i));

const FORWARD: Record<string, Finder> = {
  norm: normMistakes(() => 'x', 'norm'),
  after_norm: normMistakes(() => 'residual', 'afterNorm'),
  project: (values, i) => {
    const { wq } = values.given;
    if (wq === null || wq.columns !== wq.whole) return [];
    const row = rowOf(wq.values, wq.columns, i);
    const bias = wq.bias?.[i] ?? 0;
    const skipped = values.has('norm') ? dot(row, values.at('x')) + bias : NaN;
    return [
      ['norm_skipped', skipped],
      ['bias_skipped', wq.bias === null ? NaN : values.at('project')[i] - bias],
    ];
  },
  rotate: (values, i) => {
    const before = values.has('head_norm') ? values.at('head_norm') : values.at('project');
    return [
      ['not_rotated', before[i]],
      ['rotated_back', 2 * before[i] * cosine(values, i) - values.at('rotate')[i]],
    ];
  },
  values: (values, place) => {
    const { wv, E } = values.given;
    const bias = wv?.bias?.[place % E];
    return [['bias_skipped', bias === undefined ? NaN : values.at('values')[place] - bias], ...ofOthers(values, 'values', place, E)];
  },
  keys: (values, place) => ofOthers(values, 'keys', place, values.given.D),
  dots: (values, j) => {
    const { D, S } = values.given;
    const k = rowOf(values.at('keys'), D, j);
    const { q } = values.chain;
    const dots = values.at('dots');
    return [
      ['already_scaled', dots[j] * values.given.answer.scale],
      ['last_term_missing', dots[j] - q[D - 1] * k[D - 1]],
      ['other_key', j + 1 < S ? dots[j + 1] : NaN],
      ['other_key', j > 0 ? dots[j - 1] : NaN],
      ['sum_of_products_of_sums', q.reduce((a, b) => a + b, 0) * k.reduce((a, b) => a + b, 0)],
    ];
  },
  scale: (values, j) => {
    const dot = values.at('dots')[j];
    const { scale, head_dim: D } = values.given.answer;
    return [
      ['scale_forgotten', dot],
      ['divided_by_width', dot / D],
      ['multiplied', dot / scale],
      ['divided_by_length', dot / Math.sqrt(values.given.answer.n_keys)],
    ];
  },
  softcap: (values, j) => {
    const c = values.given.answer.softcap!;
    const score = values.at('scale')[j];
    return [
      ['cap_forgotten', score],
      ['cap_not_multiplied', Math.tanh(score / c)],
      ['cap_clipped', Math.min(c, Math.max(-c, score))],
    ];
  },
  bias: (values, j) => {
    const before = values.at(values.has('softcap') ? 'softcap' : 'scale')[j];
    return [
      ['score_bias_forgotten', before],
      ['score_bias_subtracted', 2 * before - values.at('bias')[j]],
    ];
  },
  mask: (values, j) => {
    if (values.isAllowed[j]) return [['mask_inverted', -Infinity]];
    return [
      ['mask_forgotten', values.unmasked[j]],
      ['masked_with_zero', 0],
    ];
  },
  exp: (values, j) => [
    ['mask_forgotten', values.isAllowed[j] ? NaN : Math.exp(values.unmasked[j] - values.chain.largest)],
    ['max_forgotten', Math.exp(values.chain.scores[j])],
    ['exp_forgotten', values.chain.scores[j] - values.chain.largest],
    ['exp_forgotten', values.chain.scores[j]],
  ],
  weights: (values, j) => {
    const { answer } = values.given;
    const { scores } = values.chain;
    const column = answer.column_lse?.[j] ?? null;
    const sum = scores.reduce((a, b) => (Number.isFinite(b) ? a + b : a), 0);
    return [
      ['not_divided', values.at('exp')[j]],
      ['wrong_axis', column === null ? NaN : Math.exp(scores[j] - column)],
      ['scale_forgotten', softmax(values.unscaled)[j]],
      ['mask_forgotten', softmax(values.unmasked)[j]],
      ['argmax', values.strongest === j ? 1 : 0],
      ['exp_forgotten', scores[j] / sum],
      ['even_weights', 1 / values.visible],
    ];
  },
  sum: (values, i) => {
    const { D, E, S } = values.given;
    const v = columnOf(values.at('values'), E, i);
    const even = values.isAllowed.reduce((sum, each, j) => sum + (each ? v[j] : 0), 0);
    return [
      ['keys_for_values', D === E ? dot(values.at('weights'), columnOf(values.at('keys'), D, i)) : NaN],
      ['scale_forgotten', weighted(softmax(values.unscaled), values, i)],
      ['mask_forgotten', weighted(softmax(values.unmasked), values, i)],
      ['argmax', v[values.strongest]],
      ['even_weights', even / values.visible],
      ['weights_forgotten', v.reduce((a, b) => a + b, 0)],
      ['exps_for_weights', dot(values.at('exp'), v)],
      ['last_term_missing', values.at('sum')[i] - values.at('weights')[S - 1] * v[S - 1]],
    ];
  },
  output: (values, i) => {
    const y = values.at('output')[i];
    const { rest, wo } = values.given;
    return [
      ['residual_too_early', values.at('x')[i] + y],
      ['one_head_only', y - rest![i]],
      ['bias_skipped', wo?.bias == null ? NaN : y - wo.bias[i]],
    ];
  },
  residual: (values, i) => residuals(values.at('x')[i], values.at('output')[i]),
  ff_norm: (values, i) => {
    const stream = values.has('after_norm') ? 'after_norm' : 'residual';
    return [['norm_skipped', values.at(stream)[i]]];
  },
  ff_hidden: (values, i) => {
    const { gate } = values.chain;
    const u = values.at('ff_up')[i];
    return [
      ['activation_forgotten', gate === null ? u : gate[i] * u],
      ['gate_forgotten', gate === null ? NaN : u],
      ['relu_for_other', Math.max(0, u)],
    ];
  },
  ff_residual: (values, i) => {
    const stream = values.has('after_norm') ? 'after_norm' : 'residual';
    return residuals(values.at(stream)[i], values.at('ff_down')[i]);
  },
};

const residuals = (x: number, y: number): Mistakes => [
  ['residual_forgotten', y],
  ['nothing_added', x],
  ['subtracted', x - y],
];

/** The same coordinate of the tokens beside. */
const ofOthers = (values: Values, id: string, place: number, width: number): Mistakes =>
  [place + width, place - width].map((at) => ['other_key', values.at(id)[at] ?? NaN] as const);

function cosine(values: Values, i: number): number {
  const { cos, layout } = values.given.rotation!;
  return i >= 2 * cos.length ? 1 : cos[layout === 'half' ? i % cos.length : i >> 1];
}

type BackFinder = (values: Values, back: Gradients, place: number) => Mistakes;

const BACK: Record<string, BackFinder> = {
  d_values: (values, back, n) => {
    const { E } = values.given;
    return [
      ['weights_forgotten', back.out[n % E]],
      ['weight_only', values.at('weights')[Math.floor(n / E)]],
    ];
  },
  d_weights: (values, back, j) => [
    ['weight_too_early', values.at('weights')[j] * back.weights[j]],
    ['keys_for_values', values.given.D === values.given.E ? dot(back.out, rowOf(values.at('keys'), values.given.D, j)) : NaN],
  ],
  jacobian: (values, _, n) => {
    const weights = values.at('weights');
    const [i, j] = [Math.floor(n / weights.length), n % weights.length];
    return [
      ['diagonal_only', i === j ? weights[i] : 0],
      ['outer_only', i === j ? -(weights[i] ** 2) : NaN],
      ['sign', -jacobian(weights, i, j)],
    ];
  },
  d_scores: (values, back, j) => [
    ['mean_forgotten', values.at('weights')[j] * back.weights[j]],
    ['jacobian_forgotten', back.weights[j]],
    ['weight_missing', back.weights[j] - back.mean],
  ],
  d_dots: (_, back, j) => [
    ['scale_forgotten', back.scores[j]],
  ],
  d_q: (values, back, i) => {
    const { D } = values.given;
    const keys = columnOf(values.at('keys'), D, i);
    return [['scale_forgotten', dot(back.scores, keys)]];
  },
  d_keys: (values, back, n) => {
    const { D } = values.given;
    const j = Math.floor(n / D);
    return [
      ['scale_forgotten', back.scores[j] * values.chain.q[n % D]],
      ['key_for_query', back.dots[j] * values.at('keys')[n]],
    ];
  },
};
