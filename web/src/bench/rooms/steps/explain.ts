// The arithmetic of one number of a step: its operands in columns, and the line that gives it.

import { columnOf, dot, isWhole, pairOf, project, rowOf, statistics, unpackNorm, type Matrix, type Norm, type Numbers } from './algebra';
import { jacobian, type Gradients } from './backward';
import type { Chain, Matrices, Operands } from './forward';
import { number } from '../../../view/format';

export type Explained = {
  /** Operands as columns, the last of them their products; none for steps with one operand. */
  heads: string[];
  columns: number[][];
  line: string; // up to the result
  /** Which cells of the steps above make it: all of a vector, or some places. */
  lit: Record<string, 'all' | number[]>;
  before?: number; // what a key is before it is rotated
};

const num = (value: number) => number(value, 5);
const signed = (value: number) => (value < 0 ? `− ${num(-value)}` : `+ ${num(value)}`);
const times = (a: ArrayLike<number>, b: ArrayLike<number>) => Array.from(a, (each, i) => each * b[i]);

function product(names: [string, string], a: Numbers, b: Numbers): Pick<Explained, 'heads' | 'columns'> {
  return { heads: [...names, `${names[0]} · ${names[1]}`], columns: [Array.from(a), Array.from(b), times(a, b)] };
}

const plain = (line: string, lit: Explained['lit'] = {}): Explained => ({ heads: [], columns: [], line, lit });

/** A row of a matrix times a vector, and its bias. */
function ofMatrix(names: [string, string], matrix: Matrix | null, x: Numbers, i: number, lit: Explained['lit'], rest = 0, restName = ''): Explained {
  if (matrix === null) return plain('', lit);
  const row = rowOf(matrix.values, matrix.columns, i);
  const seen = x.subarray(0, matrix.columns);
  const sum = dot(row, seen);
  const bias = matrix.bias === null ? '' : ` ${signed(matrix.bias[i])}`;
  const other = restName === '' ? '' : ` ${signed(rest)}`;
  const isSumAlone = isWhole(matrix) && bias === '' && other === '';
  const line = isSumAlone ? `Σ ${names[0]} · ${names[1]}` : `${num(sum)}${isWhole(matrix) ? '' : ' + …'}${other}${bias}`;
  return { ...product(names, seen, row), line, lit };
}

function ofNorm(norm: Norm, x: Numbers, i: number, from: string): Explained {
  const { mean, size } = statistics(norm, x);
  const above = norm.isCentred ? `(${num(x[i])} ${signed(-mean)})` : num(x[i]);
  const gain = norm.gain === null ? '' : ` · ${num(norm.gain[i])}`;
  const bias = norm.bias === null ? '' : ` ${signed(norm.bias[i])}`;
  return plain(`${above} / ${num(size)}${gain}${bias}`, { [from]: 'all' });
}

export function explain(given: Operands, chain: Chain, step: string, place: number, matrices: Matrices | null): Explained {
  const at = (id: string) => chain.stages.get(id)!.values;
  const has = (id: string) => chain.stages.has(id);
  const { answer, D, E, rotation } = given;
  const read = has('norm') ? 'norm' : 'x';
  const n = read === 'norm' ? 'n' : 'x';
  const scoresBefore = (id: string) => {
    const order = ['scale', 'softcap', 'bias', 'mask', 'exp'].filter((each) => each === 'exp' || has(each));
    return order[order.indexOf(id) - 1];
  };
  switch (step) {
    case 'norm':
      return ofNorm(given.norm!, at('x'), place, 'x');
    case 'project':
      return ofMatrix([n, 'W_Q'], given.wq, at(read), place, { [read]: 'all' });
    case 'head_norm':
      return ofNorm(given.qNorm!, at('project'), place, 'project');
    case 'rotate': {
      const from = has('head_norm') ? 'head_norm' : 'project';
      const before = at(from);
      const found = pairOf(rotation!, place);
      if (found === null) return plain(num(before[place]), { [from]: [place] });
      const { other, pair, sign } = found;
      const [cos, sin] = [rotation!.cos[pair], rotation!.sin[pair]];
      return plain(`${num(before[place])} · ${num(cos)} ${sign < 0 ? '−' : '+'} ${num(before[other])} · ${num(sin)}`, { [from]: [place, other] });
    }
    case 'keys':
    case 'values': {
      const width = step === 'keys' ? D : E;
      const matrix = step === 'keys' ? given.wk : given.wv;
      const [j, i] = [Math.floor(place / width), place % width];
      if (given.inputs === null || matrix === null) return plain('');
      const x = j === given.own ? at(read) : rowOf(given.inputs, given.inputs.length / given.S, j);
      const found = ofMatrix([`${answer.kind === 'cross' ? 'context' : n}_j`, step === 'keys' ? 'W_K' : 'W_V'], matrix, x, i, j === given.own ? { [read]: 'all' } : {});
      const isTurned = step === 'keys' && (rotation !== null || given.kNorm !== null);
      if (!isTurned) return found;
      return { ...found, line: '', before: isWhole(matrix) ? project(matrix, x)[i] : undefined };
    }
    case 'dots':
      return { ...product(['q', 'k_j'], chain.q, rowOf(at('keys'), D, place)), line: 'Σ q_i k_ji', lit: { q: 'all', keys: range(place * D, D) } };
    case 'scale':
      return plain(`${num(at('dots')[place])} · ${num(answer.scale)}`, { dots: [place] });
    case 'softcap':
      return plain(`${num(answer.softcap!)} · tanh(${num(at('scale')[place])} / ${num(answer.softcap!)})`, { scale: [place] });
    case 'bias': {
      const before = scoresBefore('bias');
      return plain(`${num(at(before)[place])} ${signed(given.bias![place])}`, { [before]: [place] });
    }
    case 'mask': {
      const before = scoresBefore('mask');
      return plain(answer.allowed[place] ? num(at(before)[place]) : `${num(at(before)[place])} → −∞`, { [before]: [place] });
    }
    case 'exp':
      return plain(`exp(${num(chain.scores[place])} ${signed(-chain.largest)})`, { [scoresBefore('exp')]: 'all' });
    case 'weights':
      return plain(`${num(at('exp')[place])} / ${num(chain.total)}`, { exp: 'all' });
    case 'sum': {
      const rest = given.others === null ? '' : ` ${signed(chain.others * given.others[place])}`;
      const places = Array.from({ length: given.S }, (_, j) => j * E + place);
      return { ...product(['w', 'v_j'], at('weights'), columnOf(at('values'), E, place)), line: `Σ w_j v_ji${rest}`, lit: { weights: 'all', values: places } };
    }
    case 'merge':
      return plain(`out_${Math.floor(place / E)}[${place % E}]`, Math.floor(place / E) === answer.head ? { sum: [place % E] } : {});
    case 'output':
      return ofMatrix(['out', 'W_O'], given.wo, at('merge').subarray(answer.head * E, (answer.head + 1) * E), place, { merge: range(answer.head * E, E) }, given.rest![place], 'rest');
    case 'residual':
      return plain(`${num(at('x')[place])} ${signed(at('output')[place])}`, { x: [place], output: [place] });
    case 'after_norm':
      return ofNorm(given.afterNorm!, at('residual'), place, 'residual');
  }
  return explainFeedForward(given, chain, step, place, matrices);
}

function explainFeedForward(given: Operands, chain: Chain, step: string, place: number, matrices: Matrices | null): Explained {
  const at = (id: string) => chain.stages.get(id)!.values;
  const network = given.answer.feed_forward;
  if (network == null) return plain('');
  const stream = chain.stages.has('after_norm') ? 'after_norm' : 'residual';
  const read = chain.stages.has('ff_norm') ? 'ff_norm' : stream;
  const F = network.hidden.shape[0];
  switch (step) {
    case 'ff_norm':
      return ofNorm(unpackNorm(network.norm)!, at(stream), place, stream);
    case 'ff_up':
      return ofMatrix(['n', 'W_up'], matrices?.up ?? null, at(read), place + (network.gate === null ? 0 : F), { [read]: 'all' });
    case 'ff_hidden': {
      const u = num(at('ff_up')[place]);
      const { gate } = chain;
      return plain(gate === null ? `${network.activation}(${u})` : `${network.activation}(${num(gate[place])}) · ${u}`, { ff_up: [place] });
    }
    case 'ff_down':
      return ofMatrix(['h', 'W_down'], matrices?.down ?? null, at('ff_hidden'), place, { ff_hidden: 'all' });
    case 'ff_residual':
      return plain(`${num(at(stream)[place])} ${signed(at('ff_down')[place])}`, { [stream]: [place], ff_down: [place] });
    case 'ff_after_norm':
      return ofNorm(unpackNorm(network.after_norm)!, at('ff_residual'), place, 'ff_residual');
  }
  return plain('');
}

export function explainBack(given: Operands, chain: Chain, back: Gradients, step: string, place: number): Explained {
  const at = (id: string) => chain.stages.get(id)!.values;
  const { D, E, S, answer } = given;
  const weights = at('weights');
  switch (step) {
    case 'd_values':
      return plain(`${num(weights[Math.floor(place / E)])} · ${num(back.out[place % E])}`, { d_out: [place % E] });
    case 'd_weights':
      return { ...product(['dout', 'v_j'], back.out, rowOf(at('values'), E, place)), line: 'Σ_i dout_i v_ji', lit: { d_out: 'all', values: range(place * E, E) } };
    case 'jacobian': {
      const [i, j] = [Math.floor(place / S), place % S];
      const start = i === j ? `${num(weights[i])} ` : '';
      return plain(`${start}− ${num(weights[i])} · ${num(weights[j])}`, { weights: [i, j] });
    }
    case 'd_scores': {
      const row = Float64Array.from({ length: S }, (_, j) => jacobian(weights, place, j));
      return { ...product(['J_j', 'dw'], row, back.weights), line: `${num(weights[place])} · (${num(back.weights[place])} ${signed(-back.mean)})`, lit: { d_weights: 'all' } };
    }
    case 'd_dots': {
      const slope = answer.softcap === null ? '' : ` · ${num(back.scores[place] === 0 ? 0 : back.dots[place] / back.scores[place] / answer.scale)}`;
      return plain(`${num(back.scores[place])}${slope} · ${num(answer.scale)}`, { d_scores: [place] });
    }
    case 'd_q':
      return { ...product(['d(q·k)', 'k_j'], back.dots, columnOf(at('keys'), D, place)), line: 'Σ_j d(q·k)_j k_ji', lit: { keys: Array.from({ length: S }, (_, j) => j * D + place) } };
    case 'd_keys':
      return plain(`${num(back.dots[Math.floor(place / D)])} · ${num(chain.q[place % D])}`, { d_dots: [Math.floor(place / D)] });
  }
  return plain('');
}

const range = (first: number, n: number): number[] => Array.from({ length: n }, (_, i) => first + i);
