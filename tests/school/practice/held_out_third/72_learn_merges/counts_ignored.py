# mistake: each word counts once, however often it occurs
from collections import Counter


def learn_merges(counts, n):
    words = {w: list(w) for w in counts}
    merges = []
    for _ in range(n):
        pairs = Counter()
        for pieces in words.values():
            for a, b in zip(pieces, pieces[1:]):
                pairs[a, b] += 1
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        for w, pieces in words.items():
            new, i = [], 0
            while i < len(pieces):
                if tuple(pieces[i : i + 2]) == best:
                    new.append(pieces[i] + pieces[i + 1])
                    i += 2
                else:
                    new.append(pieces[i])
                    i += 1
            words[w] = new
    return merges
