// The way back: from the gradient of the head's output to those of values, weights, scores, q and k.

import { dot, rowOf, type Numbers } from './algebra';
import type { Chain, Operands } from './forward';

export const WAY_BACK = ['d_out', 'd_values', 'd_weights', 'jacobian', 'd_scores', 'd_dots', 'd_q', 'd_keys'] as const;

export type Gradients = {
  out: Numbers; // E: given
  values: Numbers; // S × E
  weights: Numbers; // S
  mean: number; // Σ w · dw: what the softmax subtracts
  scores: Numbers; // S
  dots: Numbers; // S
  q: Numbers; // D
  keys: Numbers; // S × D
};

/** softmax: J = diag(w) − w wᵀ, so dscores_j = w_j (dw_j − Σ_i w_i dw_i). */
export function computeBack(given: Operands, chain: Chain, out: Numbers): Gradients {
  const { answer, S, D, E } = given;
  const stage = (id: string) => chain.stages.get(id)!.values;
  const [weights, v, k] = [stage('weights'), stage('values'), stage('keys')];
  const dWeights = Float64Array.from({ length: S }, (_, j) => dot(out, rowOf(v, E, j)));
  const others = given.others === null ? 0 : chain.others * dot(out, given.others);
  const mean = dot(weights, dWeights) + others;
  const scores = weights.map((w, j) => w * (dWeights[j] - mean));
  const { softcap } = answer;
  const scaled = stage('scale');
  const slope = (j: number) => (softcap === null ? 1 : 1 - Math.tanh(scaled[j] / softcap) ** 2);
  const dots = scores.map((each, j) => each * slope(j) * answer.scale);
  return {
    out,
    values: outer(weights, out),
    weights: dWeights,
    mean,
    scores,
    dots,
    q: Float64Array.from({ length: D }, (_, i) => dots.reduce((sum, each, j) => sum + each * k[j * D + i], 0)),
    keys: outer(dots, chain.q),
  };
}

/** An entry of the Jacobian of the softmax. */
export const jacobian = (weights: Numbers, i: number, j: number): number =>
  (i === j ? weights[i] : 0) - weights[i] * weights[j];

const outer = (a: Numbers, b: Numbers): Numbers =>
  Float64Array.from({ length: a.length * b.length }, (_, n) => a[Math.floor(n / b.length)] * b[n % b.length]);
