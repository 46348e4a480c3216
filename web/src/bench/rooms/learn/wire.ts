// What the jobs of Learn answer: workbench/wire/learn.py, course_plans.py and capstone.py, name for name.

import type { BarsParts, CellsParts, SeriesParts } from '../../../chart/wire';
import type { CapstoneRunAnswer, PlanEntry } from '../../wire';

export type { CapstoneAnswer, PlanAnswer, PlansAnswer, PlanStepEntry } from '../../wire';
export type PlanName = PlanEntry['name'];

export type Piece = { kind: string; text?: string; mathml?: string; chapter?: string; address?: string };
export type Line = Piece[];
export type Coloured = [colour: string, text: string][];
export type Passage = { kind: 'paragraph' | 'items' | 'code'; lines: Line[] };

export type ChapterEntry = {
  number: number;
  name: string;
  title: string;
  read: string | null;
  state: 'done' | 'started' | 'open';
  exercises: string[];
  experiments: string[];
  passed: number;
  questions: number;
  answered: number;
  due: number;
};
export type ExerciseEntry = {
  number: number;
  name: string;
  title: string;
  kind: string;
  minutes: number;
  difficulty: number;
  is_passed: boolean;
};
export type ExperimentEntry = {
  name: string;
  title: string;
  claim: string;
  seconds: Record<Size, number>;
};
export type Size = 'quick' | 'full';
export type CourseAnswer = {
  chapters: ChapterEntry[];
  exercises: ExerciseEntry[];
  experiments: ExperimentEntry[];
  next: { kind: 'chapter' | 'exercise' | 'questions'; name: string | null; title: string } | null;
  folder: string;
  notices: string[];
};

export type MatrixPicture = {
  kind: 'matrix';
  of: 'weights' | 'scores' | 'mask' | 'waves';
  title: string;
  rows: string[];
  columns: string[];
  shares: number[][];
  shown: string[][];
};
export type StepsPicture = {
  kind: 'steps';
  tokens: string[];
  dots: number[];
  scale: number;
  v: number[][];
};
export type AlbumPicture = { kind: 'album'; pictures: { name: string; picture: Picture }[] };
export type ChoicesPicture = {
  kind: 'choices';
  text: string;
  tokens: string[];
  logits: number[];
};
export type TimelinePicture = {
  kind: 'timeline';
  events: {
    year: number;
    problem: string;
    answer: string;
    work: string;
    address: string;
    chapter: string;
    title: string;
  }[];
};
export type FlowPicture = {
  kind: 'flow';
  title: string;
  stages: { operation: string; name: string; shape: number[]; letters: string[] }[];
};
export type MergesPicture = { kind: 'merges'; text: string; most: number };
export type Picture =
  | MatrixPicture
  | StepsPicture
  | MergesPicture
  | ChoicesPicture
  | AlbumPicture
  | TimelinePicture
  | { kind: 'row'; pictures: Picture[] }
  | FlowPicture
  | { kind: 'bars'; title: string; bars: { name: string; share: number; shown: string }[] };

export type Block =
  | { kind: 'heading'; level: number; line: Line }
  | { kind: 'prose'; line: Line }
  | { kind: 'items'; lines: Line[]; first: number | null }
  | { kind: 'table'; head: Line[]; rows: Line[][] }
  | { kind: 'formula'; mathml: string }
  | { kind: 'code'; code: Coloured; output: string }
  | { kind: 'verbatim'; text: string }
  | { kind: 'picture'; name: string; picture: Picture; caption: Line }
  | { kind: 'lab' | 'practice' | 'quiz' | 'chapter' | 'code_reference'; names: string[] };

export type PlaceEntry = {
  says: string;
  room: string;
  model: string;
  sentence: string;
  to: string | null;
  site: string | null;
  head: number | null;
};
export type ChapterAnswer = {
  number: number;
  name: string;
  title: Line;
  blocks: Block[];
  places: PlaceEntry[];
  previous: string | null;
  next: string | null;
};

export type AxisParts = { label: string; log: boolean; least: number | null; most: number | null };
export type MarkParts = { name: string; at: number; side: 'x' | 'y' };
export type LinesPanel = {
  kind: 'lines';
  title: string;
  x: AxisParts;
  y: AxisParts;
  places: number[];
  series: SeriesParts[];
  marks: MarkParts[];
};
export type BarsPanel = BarsParts & { y: AxisParts; marks: MarkParts[] };
export type Panel = LinesPanel | BarsPanel | CellsParts;

export type ExperimentAnswer = {
  name: string;
  title: string;
  claim: string;
  prediction: string;
  seconds: Record<Size, number>;
  models: string[];
};
export type Chart = { panels: Panel[] };
/** What is measured so far, while an experiment runs. */
export type MeasurePartial = { charts: Record<string, Chart> };
export type MeasureAnswer = {
  outcome: 'holds' | 'partly' | 'fails';
  size: Size;
  seed: number;
  said: Record<
    string,
    {
      outcome: string;
      checks: { holds: boolean; sentence: string }[];
      chart: Chart;
      explanation: string;
      took: string;
    }
  >;
  look_at: [file: string, name: string][];
};

export type ExerciseAnswer = ExerciseEntry & {
  text: Passage[];
  file: string;
  source: string;
  is_saved: boolean;
  hints: Passage[][];
  n_hints: number;
  solution: Coloured | null;
  missing: string[];
};
export type NumberTable = {
  rows: string[];
  columns: string[];
  expected: string[][];
  yours: string[][];
  is_wrong: boolean[][];
};
export type CheckAnswer = {
  is_passed: boolean;
  kind: string;
  line: number | null;
  said: Record<
    string,
    {
      sentences: Passage[][];
      where: string;
      seen: string;
      cases: { label: string; held: boolean | null }[];
      then: Passage[];
    }
  >;
  table: NumberTable | null;
  measured: Record<string, string>;
  printed: string;
  seconds: number;
  isolation: string[];
  kept: string | null;
  notice: string;
  solution: Coloured | null;
};

export type QuestionEntry = {
  name: string;
  topic: string;
  ask: Line;
  typed: 'number' | 'shape' | null;
  is_new: boolean;
};
export type QuestionsAnswer = {
  questions: QuestionEntry[];
  due: number;
  new: number;
  next_day: string | null;
};
export type Explanation = {
  is_right: boolean | null;
  is_read: boolean;
  short: Line;
  full: Line;
  code: Coloured;
  proofs: { kind: 'lab' | 'practice' | 'chapter' | 'code'; name: string }[];
};

export type JoinAnswer = Omit<CapstoneRunAnswer, 'said'> & {
  said: Record<
    string,
    {
      title: string;
      counts: string;
      parts: { title: string; state: string; sentences: Passage[][]; where: string }[];
      outcome: string[];
    }
  >;
};
