"""Three vectors and three dot products, to two decimals."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, blanks


def cases(_draw: Draw) -> Iterator[Case]:
    yield from blanks("position_0", "position_1", "position_2", digits=2)
    yield from blanks("dot_0_1", "dot_1_2", "dot_0_2", digits=2)
