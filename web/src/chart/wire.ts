// A chart as it travels: what render/page/chart_document.py writes, name for name.

export type Value = number | null; // null: nothing was measured, or there is no such place

/** Values that are means of several runs have their least and most beside them; else both are empty. */
export type SeriesParts = { name: string; values: Value[]; low?: Value[]; high?: Value[] };

export type BarsParts = {
  kind: 'bars';
  title: string;
  y: { label: string };
  names: string[];
  series: SeriesParts[];
  is_signed: boolean;
  n_rest: number; // how many of the last names are remainders
};

export type CellsParts = {
  kind: 'cells';
  title: string;
  rows: string;
  columns: string;
  values: Value[][];
  row_names: string[];
  column_names: string[];
  texts: string[][];
  legend: string;
  is_signed: boolean;
  most: number | null;
  measure_names: string[];
  measures: Value[][][];
  lists: [name: string, value: number][][][];
};

export type PanelParts = BarsParts | CellsParts;
export type ChartParts = { title: string; caption: string; panels: PanelParts[] };

export type ChartPage = {
  kind: 'chart';
  language: string;
  languages: Record<string, Record<string, string>>;
  chart: ChartParts; // in the language of the page
  /** What differs from it in other languages, by language: titles, and fields of each panel. */
  others: Record<string, { title: string; caption: string; panels: Partial<PanelParts>[] }>;
};

/** The chart in a language: what is not said otherwise is the same in all of them. */
export function inLanguage(page: ChartPage, code: string): ChartParts {
  const other = page.others[code];
  if (other === undefined) return page.chart;
  const panels = page.chart.panels.map((panel, n) => ({ ...panel, ...other.panels[n] }));
  return { title: other.title, caption: other.caption, panels: panels as PanelParts[] };
}
