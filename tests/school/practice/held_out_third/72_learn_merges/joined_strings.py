# correct: words as tuples in a Counter, ties by sorting
from collections import Counter


def _join(pieces, pair):
    out = []
    for piece in pieces:
        if out and not out[-1][1] and (out[-1][0], piece) == pair:
            out[-1] = (out[-1][0] + piece, True)
        else:
            out.append((piece, False))
    return tuple(p for p, _ in out)


def learn_merges(counts, n):
    words = Counter()
    for word, c in counts.items():
        words[tuple(word)] += c
    merges = []
    while len(merges) < n:
        pairs = Counter()
        for pieces, c in words.items():
            for i in range(1, len(pieces)):
                pairs[pieces[i - 1], pieces[i]] += c
        if not pairs:
            return merges
        best = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[0][0]
        merges.append(best)
        after = Counter()
        for pieces, c in words.items():
            after[_join(pieces, best)] += c
        words = after
    return merges
