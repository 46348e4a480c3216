# mistake: counts each word of the dictionary once, without its frequency
from collections import Counter


def learn_merges(counts, n):
    words = {word: list(word) for word in counts}
    merges = []
    for _ in range(n):
        pairs = Counter()
        for pieces in words.values():
            pairs.update(zip(pieces, pieces[1:]))
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        for word, pieces in words.items():
            new, i = [], 0
            while i < len(pieces):
                if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == best:
                    new.append(pieces[i] + pieces[i + 1])
                    i += 2
                else:
                    new.append(pieces[i])
                    i += 1
            words[word] = new
    return merges
