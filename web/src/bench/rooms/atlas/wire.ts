// What the server says about the atlas (src/glassformer/workbench/wire/atlas.py).

export type Opened = {
  queries: number;
  keys: number;
  is_cross: boolean;
  is_causal: boolean;
  tile: number;
  top_level: number;
  middle_level: number;
};
export type TileAnswer = {
  rows: number;
  cols: number;
  form: 'float32' | 'bfloat16';
  values: string;
  row_tops: string;
  top: number;
};
export type SurveyAnswer = {
  start: number;
  stop: number;
  share: number;
  tops: number[];
  tile: TileAnswer;
};
export type PlaceText = { start: number; labels: string[] };
export type CellAnswer = {
  query: number;
  key: number;
  weight: number | null;
  score: number | null;
  is_visible: boolean;
  rank: number | null;
  n_visible: number;
  query_text: PlaceText;
  key_text: PlaceText;
  strongest: { key: number; label: string; weight: number }[];
};
export type LabelsAnswer = { start: number; labels: string[] };
export type FindAnswer = { place: number | null; n_places: number };
export type Axis = 'query' | 'key';

/** How a question about this head is asked. */
export type Ask = <T>(
  job: string,
  extra: object,
  asking?: { signal?: AbortSignal; onprogress?: (share: number) => void },
) => Promise<T>;
