// What Steps shows, as a table: every number of every step, forward or back.

import type { Table } from '../../exports/files';
import type { Operands, Stage } from './forward';
import { kindOf, SYMBOLS } from './views';

export function tabulateSteps({ answer }: Operands, steps: readonly string[], stages: ReadonlyMap<string, Stage>): Table {
  return [
    ['step', 'symbol', 'key', 'key token', 'place', 'value', 'is edited or follows an edit'],
    ...steps.flatMap((step) => {
      const stage = stages.get(step);
      if (stage === undefined) return [];
      const { values, width, isDirty } = stage;
      const kind = kindOf(step);
      return Array.from(values, (value, n) => {
        const row = kind === 'key' ? n : kind === 'rows' ? Math.floor(n / width) : null;
        const place = kind === 'key' ? null : kind === 'rows' ? n % width : n;
        const key = row === null ? [null, null] : [answer.keys[row], answer.key_labels[row]];
        return [step, SYMBOLS[step] ?? step, ...key, place, value, isDirty ? 1 : 0];
      });
    }),
  ];
}
