"""Nine numbers."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, filled_in


def cases(draw: Draw) -> Iterator[Case]:
    yield from filled_in("weights", digits=2)
