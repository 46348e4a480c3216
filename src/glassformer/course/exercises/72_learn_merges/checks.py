"""Words over few letters, so that pairs repeat inside of words and ties occur."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, counts: dict[str, int], n: int) -> list[str]:
    return [" + ".join(pair) for pair in m.learn_merges(counts, n)]


def draw_words(draw: Draw, letters: str, n: int, longest: int) -> list[str]:
    return ["".join(draw.choice(letters) for _ in range(draw.size(3, longest))) for _ in range(n)]


def cases(draw: Draw) -> Iterator[Case]:
    for _ in range(3):
        words = draw_words(draw, "abcd", 9, 7)
        counts = {word: draw.size(1, 40) for word in words}
        yield Case("small", call, {"counts": counts, "n": 8}, ("merges",))
    # "ca b" and "a bc" contain the text "a b", and not its two pieces.
    n = draw.size(2, 5)
    yield Case("small", call, {"counts": {"ca": 2 * n, "cab": 1, "ab": n}, "n": 3}, ("merges",))
    yield Case("small", call, {"counts": {"bc": 2 * n, "abc": 1, "ab": n}, "n": 3}, ("merges",))
    for _ in range(3):
        counts = dict.fromkeys(draw_words(draw, "abc", 5, 6), 2)
        yield Case("ties", call, {"counts": counts, "n": 7}, ("merges",))
    # A word of six equal letters, in which occurrences overlap; then nothing is left to join.
    yield Case("end", call, {"counts": {"aaaaaa": 1, "ba": 3}, "n": 9}, ("merges",))
