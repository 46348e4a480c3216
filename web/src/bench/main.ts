// The workbench: its texts are fetched, then it opens where the address says.

import { mount } from 'svelte';
import '../style.css';
import { Speech } from '../view/speech.svelte';
import App from './App.svelte';
import { Bench } from './bench.svelte';
import { ROOMS } from './rooms';
import { Server, takeToken } from './server';

const token = takeToken();
const texts = await (await fetch('/texts.json')).json();
const code = navigator.languages.some((each) => /^zh\b/i.test(each)) ? 'zh' : 'en';
const speech = new Speech(texts, code); // until the place is known, the browser's
const server = new Server(
  token,
  () => speech.say('bench.error.silent'),
  () => speech.say('bench.error.token'),
);
const bench = new Bench(
  server,
  speech,
  ROOMS.map(({ name }) => name),
);
mount(App, { target: document.getElementById('app')!, props: { bench, code } });
