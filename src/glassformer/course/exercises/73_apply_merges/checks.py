"""Merges are learned from random words, as a tokenizer has them; then other words are encoded."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from glassformer.school.practice.cases import Case, Draw

Pair = tuple[str, str]


def call(m: Any, words: list[str], merges: list[Pair]) -> list[str]:
    return [" ".join(m.encode(word, list(merges))) for word in words]


def draw_words(draw: Draw, letters: str, n: int) -> list[str]:
    return ["".join(draw.choice(letters) for _ in range(draw.size(5, 11))) for _ in range(n)]


def draw_merges(draw: Draw, letters: str, n: int) -> list[Pair]:
    """The merges of a small text; each joins characters or what earlier ones have joined."""
    words = [list(word) for word in draw_words(draw, letters, 12)]
    merges: list[Pair] = []
    for _ in range(n):
        pairs = Counter(pair for word in words for pair in pairwise(word))
        merges.append(pairs.most_common(1)[0][0])
        for word in words:
            for i in range(len(word) - 1, 0, -1):
                if (word[i - 1], word[i]) == merges[-1]:
                    word[i - 1 : i + 1] = ["".join(merges[-1])]
    return merges


def cases(draw: Draw) -> Iterator[Case]:
    for letters in ("abcd", "abc", "ab"):
        given = {"merges": draw_merges(draw, letters, 9), "words": draw_words(draw, letters, 12)}
        yield Case("learned", call, given, ("pieces",))
    merges = [("b", "c"), ("a", "b"), ("ab", "d"), ("bc", "d"), ("a", "bcd")]
    words = ["abcd", "abd", "aabcabc", "cabdb"]
    yield Case("order", call, {"words": words, "merges": merges}, ("pieces",))
    yield Case("none", call, {"words": ["xyz", "ba"], "merges": merges[:2]}, ("pieces",))
