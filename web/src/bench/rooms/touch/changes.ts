// Interventions as text, term by term, so that switches can add, find and remove them. What a switch
// does not understand stays as it was typed; the server has the last word on what can be applied.

export type Options = Record<string, string>; // name=value, values as they are written
export type Term = { kind: string; place: string; options: Options } | { text: string };

const CALL = /^(\w+)\s*\(\s*([^\s(),=&$]+)\s*(?:,(.*))?\)$/s;

/** The parts of a text between marks that are outside of brackets. */
function split(text: string, mark: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '(' || text[i] === '[') depth++;
    else if (text[i] === ')' || text[i] === ']') depth--;
    else if (text[i] === mark && depth === 0) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...parts, text.slice(start)].map((part) => part.trim());
}

export function readTerms(text: string | null): Term[] {
  if (text === null || text.trim() === '') return [];
  return split(text, '&').map(readTerm);
}

function readTerm(text: string): Term {
  const found = CALL.exec(text);
  if (found === null) return { text };
  const options: Options = {};
  for (const each of found[3] === undefined ? [] : split(found[3], ',')) {
    const at = each.indexOf('=');
    const name = each.slice(0, at).trim();
    if (at < 1 || name in options) return { text };
    options[name] = each.slice(at + 1).trim();
  }
  return { kind: found[1].toLowerCase(), place: found[2], options };
}

/** As the library prints them; null where there are none. */
export function writeTerms(terms: Term[]): string | null {
  return terms.length === 0 ? null : terms.map(writeTerm).join(' & ');
}

function writeTerm(term: Term): string {
  if ('text' in term) return term.text;
  const options = Object.entries(term.options).map(([name, value]) => `${name}=${value}`);
  return `${term.kind}(${[term.place, ...options].join(', ')})`;
}

/** What a switch looks for: a kind at a place, with exactly these values of these names. */
export type Wanted = { kind: string; place: string; options?: Record<string, string | undefined> };

const matches = (term: Term, { kind, place, options = {} }: Wanted): boolean =>
  !('text' in term) &&
  term.kind === kind &&
  term.place === place &&
  Object.entries(options).every(([name, value]) => term.options[name] === value);

export function find(text: string | null, wanted: Wanted): Options | null {
  const found = readTerms(text).find((term) => matches(term, wanted));
  return found === undefined || 'text' in found ? null : found.options;
}

/** The text with such a term and these further options in the place of what was there. */
export function put(text: string | null, wanted: Wanted, options: Options = {}): string | null {
  const terms = readTerms(text);
  const given = Object.entries({ ...wanted.options, ...options }).filter(([, v]) => v !== undefined);
  const term: Term = {
    kind: wanted.kind,
    place: wanted.place,
    options: Object.fromEntries(given) as Options,
  };
  const at = terms.findIndex((each) => matches(each, wanted));
  if (at < 0) return writeTerms([...terms, term]);
  return writeTerms(terms.map((each, i) => (i === at ? term : each)));
}

/** The text without such terms. */
export function remove(text: string | null, wanted: Wanted): string | null {
  return writeTerms(readTerms(text).filter((term) => !matches(term, wanted)));
}

/** The text with other options of the one swap of a place; null takes an option away. */
export function swap(
  text: string | null,
  place: string,
  change: Record<string, string | null>,
): string | null {
  const wanted = { kind: 'swap', place };
  const options = { ...find(text, wanted) };
  for (const [name, value] of Object.entries(change)) {
    if (value === null) delete options[name];
    else options[name] = value;
  }
  return Object.keys(options).length === 0 ? remove(text, wanted) : put(text, wanted, options);
}
