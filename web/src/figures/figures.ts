// Live figures on the documentation's pages: each takes the place of what was drawn beforehand.

import { mount } from 'svelte';
import type { Picture } from '../bench/rooms/learn/wire';
import { Speech } from '../view/speech.svelte';
import LiveFigure from './LiveFigure.svelte';

interface Content {
  language: string;
  texts: Record<string, string>;
  picture: Picture;
}

for (const figure of document.querySelectorAll('.live')) {
  const [drawn, data] = figure.children;
  const { language, texts, picture } = JSON.parse(data.textContent!) as Content;
  const speech = new Speech({ [language]: texts }, language);
  drawn.replaceChildren();
  mount(LiveFigure, { target: drawn, props: { picture, speech } });
}
