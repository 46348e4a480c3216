"""Byte-pair encoding: count pairs of neighbours, join the most frequent, count again."""

from collections import Counter
from itertools import pairwise

Pair = tuple[str, str]


def join_pair(pieces: list[str], pair: Pair) -> list[str]:
    """Every occurrence of the pair as one piece, from left to right."""
    joined, i = [], 0
    while i < len(pieces):
        step = 2 if tuple(pieces[i : i + 2]) == pair else 1
        joined.append("".join(pieces[i : i + step]))
        i += step
    return joined


def learn_merges(counts: dict[str, int], n: int) -> list[Pair]:
    """{"cat": 3, "hat": 2}, 1 → [("a", "t")]"""
    words = {word: list(word) for word in counts}
    merges: list[Pair] = []
    for _ in range(n):
        pairs: Counter[Pair] = Counter()
        for word, pieces in words.items():
            for pair in pairwise(pieces):
                pairs[pair] += counts[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = {word: join_pair(pieces, best) for word, pieces in words.items()}
    return merges
