"""Positions between integers, and large ones."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    L = draw.size(3, 7)
    return {"positions": draw.normal(L, scale=20).abs(), "dim": 2 * draw.size(3, 6)}


def call(m: Any, positions: Any, dim: int) -> Any:
    return m.sinusoidal(positions, dim)


def cases(draw: Draw) -> Iterator[Case]:
    # bfloat16 cannot represent a position such as 257: compute in higher precision, then round.
    # Positions are given, not learned: a table filled number by number is as good.
    yield from battery(draw, inputs, call, names=("table",), skip=("bfloat16", "gradient"))
    far = draw.integers(1000, 100_000, 5).double()
    yield Case("large", call, {"positions": far, "dim": 10}, ("table",))
