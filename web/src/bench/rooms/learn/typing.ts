// What a plain editor does beyond a text field: it indents, keeps indentation, colours Python.

export const STEP = '    ';

/** What replaces a selection, and what is selected afterwards. */
export type Edit = { from: number; to: number; text: string; select: [number, number] };

/** Tab: a selection of several lines is indented, or with Shift unindented; else blanks. */
export function indent(text: string, from: number, to: number, isBack: boolean): Edit {
  const start = text.lastIndexOf('\n', from - 1) + 1;
  const isSeveral = text.slice(from, to).includes('\n');
  if (!isBack && !isSeveral) {
    const blanks = ' '.repeat(STEP.length - ((from - start) % STEP.length));
    return { from, to, text: blanks, select: [from + blanks.length, from + blanks.length] };
  }
  const before = text.slice(start, to).split('\n');
  const after = before.map((line) =>
    isBack ? line.replace(/^( {1,4}|\t)/, '') : line === '' ? '' : STEP + line,
  );
  const joined = after.join('\n');
  const first = after[0].length - before[0].length;
  const end = start + joined.length;
  return { from: start, to, text: joined, select: [Math.max(start, from + first), end] };
}

/** Enter: the next line begins as this one does, and one step deeper after a colon. */
export function breakLine(text: string, from: number, to: number): Edit {
  const start = text.lastIndexOf('\n', from - 1) + 1;
  const line = text.slice(start, from);
  const blanks = /^[ \t]*/.exec(line)![0] + (/:\s*(#.*)?$/.test(line) ? STEP : '');
  const at = from + 1 + blanks.length;
  return { from, to, text: `\n${blanks}`, select: [at, at] };
}

const PIECES =
  /(?<comment>#[^\n]*)|(?<string>[rbfu]{0,2}("""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(?<keyword>\b(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)\b)|(?<number>\b\d[\w.]*)/gi;

/** Python as pieces of one colour each; together they are the text, sign for sign. */
export function colourPython(text: string): [colour: string, text: string][] {
  const found: [string, string][] = [];
  let last = 0;
  for (const match of text.matchAll(PIECES)) {
    if (match.index > last) found.push(['', text.slice(last, match.index)]);
    const groups = match.groups as Record<string, string | undefined>;
    const colour = Object.keys(groups).find((name) => groups[name] !== undefined)!;
    found.push([colour, match[0]]);
    last = match.index + match[0].length;
  }
  if (last < text.length) found.push(['', text.slice(last)]);
  return found;
}
