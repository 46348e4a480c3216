# correct: recursion, and words as tuples in a dict
from collections import defaultdict


def merged(pieces, pair):
    if len(pieces) < 2:
        return pieces
    if pieces[:2] == pair:
        return (pieces[0] + pieces[1], *merged(pieces[2:], pair))
    return (pieces[0], *merged(pieces[1:], pair))


def rounds(words, n):
    pairs = defaultdict(int)
    for pieces, count in words:
        for pair in zip(pieces, pieces[1:]):
            pairs[pair] += count
    if n <= 0 or not pairs:
        return []
    best = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[0][0]
    return [best] + rounds([(merged(pieces, best), count) for pieces, count in words], n - 1)


def learn_merges(counts, n):
    return rounds([(tuple(word), count) for word, count in counts.items()], n)
