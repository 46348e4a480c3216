"""One case for each shape."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, blanks

SHAPES = ("projected", "split", "q", "keys_transposed", "scores", "out_heads", "out")


def cases(draw: Draw) -> Iterator[Case]:
    yield from blanks(*SHAPES, digits=0)
