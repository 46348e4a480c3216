// The single page, of a trace, a chart or a tree. What is shown at once lies before this script, the
// operands of a trace after it: the page is painted before the browser has read all of them.

import { mount } from 'svelte';
import type { ChartPage } from './chart/wire';
import App from './components/App.svelte';
import ChartApp from './components/ChartApp.svelte';
import TreeApp from './components/TreeApp.svelte';
import { Engine, type Texts } from './engine/engine';
import './style.css';
import type { PageParts } from './trace/wire';
import type { TreePage } from './tree/wire';
import { Speech } from './view/speech.svelte';

const taken = (id: string): string => {
  const element = document.getElementById(id)!;
  const text = element.textContent!;
  element.remove(); // megabytes that nobody needs twice
  return text;
};

const texts: Texts = {
  tensors: () => taken('tensors'),
  site: (run, site) => taken(`site-${run}-${site}`),
};
const whole = new Promise<Texts>((done) => {
  if (document.readyState === 'loading') {
    document.addEventListener('DOMContentLoaded', () => done(texts), { once: true });
  } else done(texts);
});

const page = JSON.parse(taken('page')) as PageParts | ChartPage | TreePage;
const target = document.getElementById('app')!;
const speech = new Speech(page.languages, page.language);
if (page.kind === 'chart') mount(ChartApp, { target, props: { page, speech } });
else if (page.kind === 'tree') mount(TreeApp, { target, props: { page, speech } });
else mount(App, { target, props: { page, engine: new Engine(page, whole), speech } });
