// What Flow shows, as tables: the stream with its lens, contributions, the chain of reasons.

import type { NodeParts } from '../../../tree/wire';
import type { Table } from '../../exports/files';
import type { AttributeAnswer, FlowAnswer, LensAnswer, VerdictAnswer, WhyAnswer } from './wire';

export function tabulateStream(flow: FlowAnswer, lens: LensAnswer | null): Table {
  const said = (n: number) => {
    const border = lens?.borders[n];
    if (border === undefined) return [];
    const { top, entropy, divergence, rank } = border;
    return [...top.flatMap(({ token, probability }) => [token, probability]), entropy, divergence, rank + 1];
  };
  const best = (lens?.borders[0]?.top ?? []).flatMap((_, n) => [`token ${n + 1}`, `probability ${n + 1}`]);
  const heads = lens === null ? [] : [...best, 'entropy (nats)', 'divergence (nats)', 'rank'];
  return [
    ['border', 'part', 'norm added', 'share', 'norm', ...heads],
    ...flow.borders.map(({ name, norm }, n) => {
      const part = n === 0 ? null : flow.inflows[n - 1];
      return [name, part?.name ?? null, part?.norm ?? null, part?.share ?? null, norm, ...said(n)];
    }),
  ];
}

export const tabulateContributions = ({ token, against, shares, remainder, logit }: AttributeAnswer): Table => [
  ['name', 'part', 'head', 'token', 'against', 'contribution'],
  ...shares.map(({ name, part, head, value }) => [name, part, head, token, against, value]),
  ['remainder', null, null, token, against, remainder],
  ['logit', null, null, token, against, logit],
];

export function tabulateReasons(why: WhyAnswer, verdict: VerdictAnswer | null, code: string): Table {
  const rows: Table = [['level', 'name', 'below', 'value', 'unit', 'note']];
  const add = (node: NodeParts, level: number, above: string | null) => {
    rows.push([level, node.name, above, node.value, node.unit || 'logit', node.note]);
    for (const child of node.children) add(child, level + 1, node.name);
  };
  add(why.trees[code].root, 0, null);
  const numbers = verdict?.numbers ?? null;
  if (numbers !== null) {
    for (const name of ['whole', 'kept', 'removed', 'none'] as const)
      rows.push([null, `verdict: ${name}`, null, numbers[name], 'logit', null]);
  }
  return rows;
}
