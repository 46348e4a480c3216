// The single page: its trace lies in the document itself.

import { mount } from 'svelte';
import App from './components/App.svelte';
import './style.css';
import { WholeSource } from './trace/source';
import type { TraceParts } from './trace/wire';
import { Speech } from './view/speech.svelte';

const element = document.getElementById('trace')!;
const parts = JSON.parse(element.textContent!) as TraceParts;
element.remove(); // tens of megabytes of text that nobody needs twice

mount(App, {
  target: document.getElementById('app')!,
  props: { source: new WholeSource(parts), speech: new Speech(parts.languages, parts.language) },
});
