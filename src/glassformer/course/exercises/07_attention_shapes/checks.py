"""Four shapes."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, blanks


def cases(draw: Draw) -> Iterator[Case]:
    yield from blanks("keys_transposed", "scores", "weights", "out", digits=0)
