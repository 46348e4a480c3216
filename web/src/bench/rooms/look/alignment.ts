// Which token of one text belongs to which of another. Texts of one length are compared place by
// place, as gf.compare does; others by their tokens.

/** For each token of one text its partner in the other; null: it has none. */
export type Partners = (number | null)[];
export type Alignment = { there: Partners; back: Partners };

const MOST_CELLS = 1 << 24; // of the table of a search; beyond, only what begins or ends alike

export function align(first: string[], second: string[]): Alignment {
  const there: Partners = first.map(() => null);
  const back: Partners = second.map(() => null);
  const pair = (i: number, j: number) => {
    there[i] = j;
    back[j] = i;
  };
  if (first.length === second.length) {
    first.forEach((_, i) => pair(i, i));
    return { there, back };
  }
  const [a, b] = [first.map(plain), second.map(plain)];
  let [i, j] = [0, 0];
  for (const [p, q] of [...matches(a, b), [a.length, b.length]]) {
    pairGap(a, b, [i, p], [j, q], pair);
    if (p < a.length) pair(p, q);
    [i, j] = [p + 1, q + 1];
  }
  return { there, back };
}

/** A token without the sign for its space, in small letters: models differ in both. */
const plain = (token: string): string => token.replace(/^[␣▁]+(?=.)/u, '').toLowerCase();

type Span = [from: number, to: number];

/** Between two matches: as many tokens here as there are partners in order, and so are pieces that
 *  spell the same. */
function pairGap(a: string[], b: string[], [i, p]: Span, [j, q]: Span, pair: (i: number, j: number) => void) {
  if (p - i === q - j) {
    for (let n = 0; n < p - i; n++) pair(i + n, j + n);
  } else if (a.slice(i, p).join('') === b.slice(j, q).join('')) {
    const begins = (tokens: string[], from: number, to: number) => {
      let at = 0;
      return new Map(tokens.slice(from, to).map((token, n) => [(at += token.length) - token.length, from + n]));
    };
    const other = begins(b, j, q);
    for (const [at, n] of begins(a, i, p)) if (other.has(at)) pair(n, other.get(at)!);
  }
}

/** The longest common subsequence, as pairs of places. */
function matches(a: string[], b: string[]): [number, number][] {
  let [start, p, q] = [0, a.length, b.length];
  while (start < Math.min(p, q) && a[start] === b[start]) start++;
  while (p > start && q > start && a[p - 1] === b[q - 1]) [p, q] = [p - 1, q - 1];
  const found: [number, number][] = Array.from({ length: start }, (_, n) => [n, n]);
  const [rows, columns] = [p - start, q - start];
  if (rows * columns > 0 && rows * columns <= MOST_CELLS) {
    const wide = columns + 1;
    const longest = new Uint16Array((rows + 1) * wide); // of what follows a pair of places
    for (let i = rows - 1; i >= 0; i--) {
      for (let j = columns - 1; j >= 0; j--) {
        longest[i * wide + j] =
          a[start + i] === b[start + j]
            ? longest[(i + 1) * wide + j + 1] + 1
            : Math.max(longest[(i + 1) * wide + j], longest[i * wide + j + 1]);
      }
    }
    for (let [i, j] = [0, 0]; i < rows && j < columns; ) {
      if (a[start + i] === b[start + j]) found.push([start + i++, start + j++]);
      else if (longest[(i + 1) * wide + j] >= longest[i * wide + j + 1]) i++;
      else j++;
    }
  }
  for (let n = 0; p + n < a.length; n++) found.push([p + n, q + n]);
  return found;
}

/** What belongs to a cell in the other map; null where one of its tokens has no partner. */
export function carry<C extends { query: number; key: number }>(
  cell: C,
  queries: Partners,
  keys: Partners,
): { query: number; key: number } | null {
  const [query, key] = [queries[cell.query] ?? null, keys[cell.key] ?? null];
  return query === null || key === null ? null : { query, key };
}
