// The plan that a learner follows: kept in the browser for the days between; a link may name one.

import type { Part } from './course.svelte';
import type { PlanName, PlanStepEntry } from './wire';

export const PLANS: readonly PlanName[] = ['weekend', 'weeks', 'interview'];
const KEY = 'glassformer-plan';

/** A plan by its name; null for any other text. */
export const readPlan = (text: string | null): PlanName | null =>
  PLANS.find((each) => each === text) ?? null;

export const keptPlan = (): PlanName | null => readPlan(localStorage.getItem(KEY));

export function keepPlan(name: PlanName | null): void {
  try {
    if (name === null) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, name);
  } catch {
    // No room: it is followed until the page is closed.
  }
}

const KINDS: Record<PlanStepEntry['kind'], Part['kind']> = {
  chapter: 'chapter',
  lab: 'lab',
  practice: 'exercise',
  quiz: 'questions',
  capstone: 'capstone',
};

/** Where a step is done. */
export const partOf = ({ kind, name }: PlanStepEntry): Part => ({ kind: KINDS[kind], name });

type Timed = { minutes: number; done: boolean };

/** How many steps are done, and how many minutes the others may take. */
export function countSteps(steps: readonly Timed[]): { done: number; left: number } {
  const open = steps.filter(({ done }) => !done);
  return {
    done: steps.length - open.length,
    left: open.reduce((sum, { minutes }) => sum + minutes, 0),
  };
}
