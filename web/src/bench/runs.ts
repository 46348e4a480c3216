// A run as the server describes it, and the engine that computes its heads in the browser.

import type { Schemas } from './schemas';
import { Engine } from '../engine/engine';
import type { PageParts, SiteOperands, TensorParts } from '../trace/wire';
import type { Server } from './server';

/** Tokens: beyond, the server computes what is shown. */
export const LONG = 2048;

/** What every question names: a text on a model. */
export type Reading = {
  model: string;
  text: string;
  to: string | null;
  target: string | null;
  change: string | null;
  second: string | null;
};

export type Guess = Schemas['Guess'];
export type Outcome = Schemas['Outcome'];
export type Insight = Schemas['Insight'];
export type Described = Pick<PageParts, 'kind' | 'version' | 'name' | 'model' | 'opening' | 'runs'>;
export type RunAnswer = {
  page: Described;
  tensors: TensorParts;
  opened: SiteOperands; // of the site that the run opens with
  outcome: Outcome;
  insight: Insight | null;
};
export type ModelEntry = Schemas['ModelEntry'];

/** A run that has been described; operands are fetched site by site. */
export class Run {
  readonly engine: Engine;

  constructor(
    readonly reading: Reading,
    readonly answer: RunAnswer,
    server: Server,
  ) {
    const texts = {
      tensors: () => JSON.stringify(answer.tensors),
      site: async (_run: number, site: number) =>
        JSON.stringify(
          site === answer.page.opening.site
            ? answer.opened
            : await server.ask('site', { ...reading, site }),
        ),
    };
    this.engine = new Engine(answer.page, Promise.resolve(texts));
  }

  /** It is no longer shown. */
  close(): void {
    this.engine.close();
  }

  get parts() {
    return this.answer.page.runs[this.answer.page.opening.run];
  }
}
