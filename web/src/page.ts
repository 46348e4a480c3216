// The single page. What is shown at once lies before this script, the operands after it: the page
// is painted before the browser has read all of them.

import { mount } from 'svelte';
import App from './components/App.svelte';
import { Engine, type Texts } from './engine/engine';
import './style.css';
import type { PageParts } from './trace/wire';
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

const page = JSON.parse(taken('page')) as PageParts;
const engine = new Engine(page, whole);
mount(App, {
  target: document.getElementById('app')!,
  props: { page, engine, speech: new Speech(page.languages, page.language) },
});
