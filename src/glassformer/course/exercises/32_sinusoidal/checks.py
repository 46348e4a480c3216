"""Places between whole numbers, and far away ones."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    L = draw.size(3, 7)
    return {"positions": draw.normal(L, scale=20).abs(), "dim": 2 * draw.size(3, 6)}


def call(m: Any, positions: Any, dim: int) -> Any:
    return m.sinusoidal(positions, dim)


def cases(draw: Draw) -> Iterator[Case]:
    # In bfloat16 a place such as 257 does not exist; the table is made in better, then rounded.
    yield from battery(draw, inputs, call, names=("table",), skip=("bfloat16",))
    far = draw.integers(1000, 100_000, 5).double()
    yield Case("large", call, {"positions": far, "dim": 10}, ("table",))
