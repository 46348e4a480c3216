"""Scores large enough that rounding shows, and their gradients, which // does not have."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, D, E = draw.sizes(5)
    return {"q": draw.normal(B, L, D), "k": draw.normal(B, S, D), "v": draw.normal(B, S, E)}


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw, inputs, lambda m, q, k, v: m.attention(q, k, v), names=("out", "weights")
    )
