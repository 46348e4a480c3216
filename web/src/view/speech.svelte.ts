// What the page says, in the language that is chosen.

import { getContext, setContext } from 'svelte';

type Texts = Record<string, Record<string, string>>;

export class Speech {
  code = $state('en');

  constructor(
    private readonly texts: Texts,
    code: string,
  ) {
    this.code = code;
  }

  get codes(): string[] {
    return Object.keys(this.texts);
  }

  say = (key: string, values: Record<string, string | number> = {}): string =>
    this.texts[this.code][key].replace(/\{([a-z]+)\}/g, (_, name: string) => String(values[name]));

  /** A text and the names of what is to be filled in, in order. */
  parts = (key: string): { text?: string; name?: string }[] =>
    this.texts[this.code][key]
      .split(/(\{[a-z]+\})/)
      .filter((part) => part !== '')
      .map((part) => (part.startsWith('{') ? { name: part.slice(1, -1) } : { text: part }));
}

/** The name of each language in itself. */
export const LANGUAGES: Record<string, string> = { en: 'English', zh: '中文' };

const KEY = Symbol('speech');
export const offerSpeech = (speech: Speech): Speech => setContext(KEY, speech);
export const speech = (): Speech => getContext<Speech>(KEY);
