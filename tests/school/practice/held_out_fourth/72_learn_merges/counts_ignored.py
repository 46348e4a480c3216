# mistake: ignores how often a word occurs: every word counts once
from collections import Counter


def join(pieces, pair):
    out, i = [], 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair:
            out.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            out.append(pieces[i])
            i += 1
    return out


def learn_merges(counts, n):
    words = [list(word) for word in counts]
    merges = []
    while len(merges) < n:
        pairs = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = [join(word, best) for word in words]
    return merges
