# mistake: stops as soon as the most frequent pair occurs only once, although pairs are left
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
        if pairs[best] < 2:
            break
        merges.append(best)
        for word, pieces in words.items():
            new, i = [], 0
            while i < len(pieces):
                if tuple(pieces[i : i + 2]) == best:
                    new.append("".join(best))
                    i += 2
                else:
                    new.append(pieces[i])
                    i += 1
            words[word] = new
    return merges
