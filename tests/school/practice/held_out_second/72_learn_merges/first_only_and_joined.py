# mistake: two at once: returns the joined strings instead of pairs; and joins only the first occurrence in each word
from collections import Counter


def learn_merges(counts, n):
    words = {word: list(word) for word in counts}
    merges = []
    for _ in range(n):
        pairs = Counter()
        for word, pieces in words.items():
            for a, b in zip(pieces, pieces[1:]):
                pairs[a, b] += counts[word]
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append("".join(best))
        for pieces in words.values():
            for i in range(len(pieces) - 1):
                if (pieces[i], pieces[i + 1]) == best:
                    pieces[i : i + 2] = ["".join(best)]
                    break
    return merges
