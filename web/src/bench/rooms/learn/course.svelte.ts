// The course as the learner has left it, and where in it one is: a part, in the option learn.open.

import { getContext, setContext } from 'svelte';
import type { Bench } from '../../bench.svelte';
import type { Asking } from '../../server';
import { keepPlan, keptPlan, readPlan } from './plans';
import type {
  ChapterEntry,
  CourseAnswer,
  ExerciseEntry,
  ExperimentEntry,
  PlanAnswer,
  PlanName,
} from './wire';

export const KINDS = ['chapter', 'lab', 'exercise', 'questions', 'plan', 'capstone'] as const;
const NAMELESS: readonly string[] = ['questions', 'plan', 'capstone'];
export type Part = { kind: (typeof KINDS)[number] | 'map'; name: string };

/** A part by its text in the address: chapter:masks. */
export function readPart(text: string): Part {
  const [kind, name = ''] = text.split(':', 2);
  const found = KINDS.find((each) => each === kind);
  return found === undefined || (name === '' && !NAMELESS.includes(found))
    ? { kind: 'map', name: '' }
    : { kind: found, name };
}

export const writePart = ({ kind, name }: Part): string => (name === '' ? kind : `${kind}:${name}`);

export class Course {
  answer = $state.raw<CourseAnswer | null>(null);
  fault = $state<string | null>(null);
  plan = $state.raw<PlanAnswer | null>(null); // that the learner follows
  private kept = $state(keptPlan());

  constructor(readonly bench: Bench) {}

  get part(): Part {
    return readPart(this.bench.option('learn.open', 'map'));
  }

  go(kind: Part['kind'], name = ''): void {
    this.bench.set({ 'learn.open': kind === 'map' ? null : writePart({ kind, name }) });
  }

  /** The plan that a link names, or else the one that was chosen in this browser. */
  get planName(): PlanName | null {
    return readPlan(this.bench.option('learn.plan', '')) ?? this.kept;
  }

  follow(name: PlanName | null): void {
    keepPlan(name);
    this.kept = name;
    this.bench.set({ 'learn.plan': null }); // whatever a link has named
  }

  ask<T>(job: string, asked: object = {}, asking: Asking = {}): Promise<T> {
    return this.bench.server.ask<T>(`learn/${job}`, asked, asking);
  }

  /** The same, in the language of the page. */
  tell<T>(job: string, asked: object = {}, asking: Asking = {}): Promise<T> {
    return this.ask<T>(job, { ...asked, lang: this.bench.speech.code }, asking);
  }

  /** The map anew: something was read, passed or answered. */
  async load(): Promise<void> {
    try {
      this.answer = await this.tell<CourseAnswer>('course');
      this.fault = null;
    } catch (error) {
      this.fault = (error as Error).message;
    }
    await this.loadPlan();
  }

  /** The plan anew; one that was chosen in the meantime is not overwritten. */
  async loadPlan(): Promise<void> {
    const [name, code] = [this.planName, this.bench.speech.code];
    if (name === null) {
      this.plan = null;
      return;
    }
    try {
      const found = await this.tell<PlanAnswer>('plan', { name });
      if (this.planName === name && this.bench.speech.code === code) this.plan = found;
    } catch (error) {
      this.fault = (error as Error).message;
    }
  }

  chapter = (name: string): ChapterEntry | undefined =>
    this.answer?.chapters.find((each) => each.name === name);
  exercise = (name: string): ExerciseEntry | undefined =>
    this.answer?.exercises.find((each) => each.name === name);
  experiment = (name: string): ExperimentEntry | undefined =>
    this.answer?.experiments.find((each) => each.name === name);
}

const KEY = Symbol('course');
export const offerCourse = (course: Course): Course => setContext(KEY, course);
export const theCourse = (): Course => getContext<Course>(KEY);
