// What Touch shows, as tables: the weights of the head and the predictions, in both runs.

import type { Table } from '../../exports/files';
import type { ChangeAnswer, HeadShift } from './wire';

export const tabulateWeights = ({ rows, keys, first_row, first_key, before, after }: HeadShift): Table => [
  ['query', 'query token', 'key', 'key token', 'before', 'after', 'difference'],
  ...rows.flatMap((row, q) =>
    keys.map((key, k) => [
      first_row + q,
      row,
      first_key + k,
      key,
      before[q][k],
      after[q][k],
      after[q][k] - before[q][k],
    ]),
  ),
];

export const tabulatePredictions = ({ positions, position, tokens }: ChangeAnswer): Table => [
  ['position', 'after token', 'token', 'before', 'after', 'difference'],
  ...tokens.map(({ token, before, after }) => [
    position,
    positions[position],
    token,
    before,
    after,
    after - before,
  ]),
];

export const tabulateDivergence = ({ positions, divergence }: ChangeAnswer): Table => [
  ['position', 'token', 'divergence (nats)'],
  ...positions.map((name, n) => [n, name, divergence[n]]),
];
