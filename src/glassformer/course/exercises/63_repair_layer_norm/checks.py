"""Narrow vectors and a large eps, so that both make a visible difference."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3, low=3)
    return {"x": draw.normal(B, L, C) + 0.5, "dim": C, "eps": draw.choice([0.01, 0.1, 0.3])}


def build(m: Any, dim: int, eps: float) -> nn.Module:
    return m.LayerNorm(dim, eps)


def cases(draw: Draw) -> Iterator[Case]:
    call = lambda model, x: model(x)  # noqa: E731
    yield from battery(draw, inputs, call, build=build, skip=("bfloat16",))
