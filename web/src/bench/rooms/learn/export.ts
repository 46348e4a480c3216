// What an experiment has found, as a table for each panel of its chart, and as Python lines.

import type { Table } from '../../exports/files';
import type { MeasureAnswer, Panel } from './wire';

export function tabulatePanel(panel: Panel): Table {
  if (panel.kind === 'cells') {
    const { rows, columns, row_names, column_names, values } = panel;
    return [
      [`${rows} \\ ${columns}`, ...column_names],
      ...values.map((row, n) => [row_names[n], ...row]),
    ];
  }
  const [name, places] =
    panel.kind === 'lines' ? [panel.x.label, panel.places] : [panel.y.label, panel.names];
  const columns = panel.series.flatMap((series) => {
    const label = series.name || panel.y.label;
    if (!series.low?.length) return [{ label, values: series.values }];
    return [
      { label, values: series.values },
      { label: `${label} (min)`, values: series.low },
      { label: `${label} (max)`, values: series.high ?? [] },
    ];
  });
  return [
    [name, ...columns.map(({ label }) => label)],
    ...places.map((place, n) => [place, ...columns.map(({ values }) => values[n])]),
  ];
}

export function writeLines(name: string, found: MeasureAnswer, model: string | null, code: string): string {
  const given = [
    JSON.stringify(name),
    `size=${JSON.stringify(found.size)}`,
    `seed=${found.seed}`,
    ...(model === null ? [] : [`model=${JSON.stringify(model)}`]),
  ];
  return [
    'from glassformer.languages import Language',
    'from glassformer.school.lab.runner import run_experiment',
    '',
    `report = run_experiment(${given.join(', ')})`,
    `language = Language(${JSON.stringify(code)})`,
    'print(report.verdict.outcome)',
    'for holds, sentence in report.sentences(language):',
    '    print(holds, sentence)',
    'for panel in report.chart(language).as_dict()["panels"]:',
    '    print(panel)',
    '',
  ].join('\n');
}
