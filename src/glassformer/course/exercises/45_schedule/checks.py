"""Before, at and after the end of the warm-up; rates are small, so the tolerance is tight."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, step: int, dim: int, warmup: int) -> Any:
    return m.learning_rate(step, dim, warmup)


def cases(draw: Draw) -> Iterator[Case]:
    for name, low, high in (("up", 0.1, 0.9), ("top", 1, 1), ("down", 1.5, 20)):
        for _ in range(2):
            dim, warmup = 16 * draw.size(4, 64), draw.size(100, 8000)
            step = draw.size(int(low * warmup), int(high * warmup))
            given = {"step": step, "dim": dim, "warmup": warmup}
            yield Case(name, call, given, ("rate",), tolerance=1e-12)
    first = {"step": 1, "dim": 512, "warmup": 4000}
    yield Case("example", call, first, ("rate",), tolerance=1e-12)
