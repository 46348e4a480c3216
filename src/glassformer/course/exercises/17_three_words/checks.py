"""Nine numbers."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, blanks


def cases(draw: Draw) -> Iterator[Case]:
    yield from blanks("weights", digits=2)
