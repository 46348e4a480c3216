"""One of four answers."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, predicted


def cases(draw: Draw) -> Iterator[Case]:
    yield from predicted("answer", choices=("a", "b", "c", "d"))
