// What Writing shows, as tables: the choices of every token, and the hypotheses of a beam search.

import type { Table } from '../../exports/files';
import type { BeamNode, Step } from './wire';

export const tabulateChoices = (steps: Step[]): Table => [
  ['step', 'written', 'entropy (nats)', 'id', 'token', 'before', 'after', 'is written'],
  ...steps.flatMap(({ token, piece, entropy, top, chosen }, n) => {
    const all = top.some((each) => each.token === token) ? top : [...top, chosen];
    return all.map((each) => [
      n,
      piece,
      entropy,
      each.token,
      each.piece,
      each.before,
      each.after,
      each.token === token ? 1 : 0,
    ]);
  }),
];

export const tabulateBeams = (tree: BeamNode[]): Table => [
  ['node', 'parent', 'token', 'piece', 'text', 'log-probability', 'score', 'fate', 'is best'],
  ...tree.map((node, n) => [
    n,
    node.parent,
    node.token,
    node.piece,
    node.text,
    node.log_probability,
    node.score,
    node.fate,
    node.is_best ? 1 : 0,
  ]),
];
