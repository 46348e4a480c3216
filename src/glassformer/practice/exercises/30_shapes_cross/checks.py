"""One case for each shape; no number may be off at all."""

from collections.abc import Iterator
from typing import Any

from glassformer.practice.cases import Case, Draw

SHAPES = ("w_k", "w_v", "w_o", "q", "k", "v", "scores", "out_heads", "out")


class Shape:
    """The shape that the file gives under a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, m: Any) -> Any:
        return getattr(m, self.name)


def cases(draw: Draw) -> Iterator[Case]:
    for name in SHAPES:
        yield Case("shapes", Shape(name), names=(name,), tolerance=1e-4, loose=True)
