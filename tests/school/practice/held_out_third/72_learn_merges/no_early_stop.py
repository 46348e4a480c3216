# mistake: the pairs are counted once at the start and the n most frequent returned, without merging in between
from collections import Counter


def learn_merges(counts, n):
    pairs = Counter()
    for word, c in counts.items():
        for a, b in zip(word, word[1:]):
            pairs[a, b] += c
    return sorted(pairs, key=lambda p: (-pairs[p], p))[:n]
