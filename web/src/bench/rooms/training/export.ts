// What Training shows, as tables and as Python lines: what was logged, and a frame of the film.

import type { Table } from '../../exports/files';
import type { Frame, Measurement, Sample } from './wire';

export function tabulateMeasures(lines: Measurement[], measures: string[]): Table {
  return [
    ['step', 'epoch', ...measures],
    ...lines.map(({ step, epoch, values }) => [
      step,
      epoch,
      ...measures.map((measure) => values[measure] ?? null),
    ]),
  ];
}

export const tabulateSamples = (samples: Sample[]): Table => [
  ['step', 'text', 'sample'],
  ...samples.map(({ step, text, sample }) => [step, text, sample]),
];

export const tabulateFrame = ({ step, maps }: Frame): Table => [
  ['step', 'site', 'head', 'row', 'row token', 'column', 'column token', 'weight'],
  ...maps.flatMap(({ site, head, rows, keys, weights }) =>
    weights.flatMap((row, q) =>
      row.map((weight, k) => [step, site, head, q, rows[q] ?? null, k, keys[k] ?? null, weight]),
    ),
  ),
];

/** A program that reads the same files as the room. */
export function writeLines(folder: string, frame: Frame | null): string {
  const begin = [
    'import json',
    'from pathlib import Path',
    '',
    ...(frame === null ? [] : ['import glassformer as gf', '']),
    `folder = Path(${JSON.stringify(folder)})`,
    'lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]',
    'for line in lines:',
    '    print(line)',
  ];
  if (frame === null) return `${begin.join('\n')}\n`;
  const film = [
    `# the heads at step ${frame.step}`,
    'snapshots = {int(path.stem): path for path in (folder / "snapshots").glob("*.trace")}',
    `trace = gf.Trace.load(snapshots[${frame.step}])`,
    'maps = [',
    ...frame.maps.map(({ site, head, is_pooled }) => {
      const found = `trace[${JSON.stringify(site)}]`;
      return is_pooled
        ? `    ${found}.map(${head}, size=64).maximum,`
        : `    ${found}.weights(head=${head}),`;
    }),
    ']',
    'print(*maps, sep="\\n")',
  ];
  return `${[...begin, ...film].join('\n')}\n`;
}
