"""The usual battery: GELU is smooth, so random numbers tell it from everything near it."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3)
    return {"x": draw.normal(B, L, C), "dim": C, "hidden_dim": draw.size(9, 13)}


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw,
        inputs,
        lambda model, x: model(x),
        build=lambda m, dim, hidden_dim: m.GELUFeedForward(dim, hidden_dim),
    )
