"""One answer out of five."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, prediction


def cases(draw: Draw) -> Iterator[Case]:
    yield from prediction("answer", choices=("a", "b", "c", "d", "e"))
