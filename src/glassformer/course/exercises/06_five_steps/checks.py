"""Four lines of numbers, each to two decimals."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, blanks


def cases(draw: Draw) -> Iterator[Case]:
    yield from blanks("scaled", "exps", "weights", "out", digits=2)
