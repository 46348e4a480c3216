// What the server says about the atlas, and how it is asked.

import type { Asking } from '../../server';
import type { OpenAnswer } from '../../wire';

export type {
  CellAnswer,
  FindAnswer,
  LabelsAnswer,
  PlaceText,
  SurveyAnswer,
  TileAnswer,
} from '../../wire';
export type Opened = OpenAnswer;
export type Axis = 'query' | 'key';

/** How a question about this head is asked. */
export type Ask = <T>(job: string, extra: object, asking?: Asking) => Promise<T>;
