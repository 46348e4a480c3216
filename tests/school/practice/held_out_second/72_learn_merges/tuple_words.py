# correct: words are tuples in a Counter, zip counts the pairs, sorted finds the best one
from collections import Counter


def _join(pieces, pair):
    joined, rest = [], list(pieces)
    while rest:
        if tuple(rest[:2]) == pair:
            joined.append(rest[0] + rest[1])
            rest = rest[2:]
        else:
            joined.append(rest.pop(0))
    return tuple(joined)


def learn_merges(counts, n):
    words = [(tuple(word), count) for word, count in counts.items()]
    learned = []
    while len(learned) < n:
        frequency = Counter()
        for pieces, count in words:
            for pair in zip(pieces, pieces[1:]):
                frequency[pair] += count
        if not frequency:
            break
        best = sorted(frequency.items(), key=lambda item: (-item[1], item[0]))[0][0]
        learned.append(best)
        words = [(_join(pieces, best), count) for pieces, count in words]
    return learned
