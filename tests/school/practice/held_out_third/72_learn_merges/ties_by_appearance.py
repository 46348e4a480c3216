# mistake: ties go to the pair seen first, not to the alphabetically first
from collections import Counter


def learn_merges(counts, n):
    words = {w: list(w) for w in counts}
    merges = []
    for _ in range(n):
        pairs = Counter()
        for w, pieces in words.items():
            for pair in zip(pieces, pieces[1:]):
                pairs[pair] += counts[w]
        if not pairs:
            break
        best = pairs.most_common(1)[0][0]
        merges.append(best)
        for w, pieces in words.items():
            i = 0
            while i < len(pieces) - 1:
                if (pieces[i], pieces[i + 1]) == best:
                    pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
                i += 1
    return merges
