// Byte-pair encoding of a text, merge by merge, as school/learn/merges.py has it.

export type Merge = { piece: string; count: number; left: number };
export type Learned = { merges: Merge[]; words: string[][] };

const WORD = / ?[^ ]+| +/g;

/** A piece is kept as a string with one character, 0 to 255, for each of its bytes. */
const bytesOf = (text: string) => Array.from(new TextEncoder().encode(text), (b) => String.fromCharCode(b));

function joinPair(word: string[], [left, right]: [string, string]): string[] {
  const joined: string[] = [];
  for (let i = 0; i < word.length; i++) {
    if (word[i] === left && word[i + 1] === right) joined.push(left + word[++i]);
    else joined.push(word[i]);
  }
  return joined;
}

/** Merge the most frequent pair of neighbours, the first of them if several are. */
export function learnMerges(text: string, most: number): Learned {
  let words = (text.match(WORD) ?? []).map(bytesOf);
  const merges: Merge[] = [];
  while (merges.length < most) {
    const pairs = new Map<string, { pair: [string, string]; count: number }>();
    for (const word of words) {
      for (let i = 0; i + 1 < word.length; i++) {
        const name = `${word[i].length}:${word[i]}${word[i + 1]}`; // "ab"+"c" is not "a"+"bc"
        const found = pairs.get(name);
        if (found) found.count++;
        else pairs.set(name, { pair: [word[i], word[i + 1]], count: 1 });
      }
    }
    let best: { pair: [string, string]; count: number } | null = null;
    for (const each of pairs.values()) if (best === null || each.count > best.count) best = each;
    if (best === null || best.count < 2) break;
    const { pair, count } = best;
    words = words.map((word) => joinPair(word, pair));
    const left = words.reduce((sum, word) => sum + word.length, 0);
    merges.push({ piece: pair.join(''), count, left });
  }
  return { merges, words };
}

/** Spaces are visible, and so are bytes that are no whole character. */
export function writePiece(piece: string): string {
  const bytes = Uint8Array.from(piece, (each) => each.charCodeAt(0));
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes).replaceAll(' ', '␣');
  } catch {
    return Array.from(bytes, (b) => b.toString(16).toUpperCase().padStart(2, '0')).join('·');
  }
}
