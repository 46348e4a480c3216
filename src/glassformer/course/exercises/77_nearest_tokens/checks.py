"""Rows of different lengths around a mean that is far from zero."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    V, C = draw.size(14, 19), draw.size(5, 8)
    lengths = draw.normal(V, 1).exp()
    weight = draw.normal(V, C) * lengths + draw.normal(1, C, scale=2.0)
    return {"weight": weight, "token": draw.size(0, V - 1), "k": draw.size(3, 5)}


def call(m: Any, weight: Tensor, token: int, k: int) -> Any:
    return m.nearest(weight, token, k)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw, inputs, call, names=("cosines", "tokens"), variants=("values", "strided")
    )
    given = inputs(draw)
    before = given["weight"].clone()

    def call_twice(m: Any, weight: Tensor, token: int, k: int) -> Any:
        m.nearest(weight, token, k)
        return (weight - before).abs().max().item(), m.nearest(weight, token, k)[1]

    yield Case("unchanged", call_twice, given, ("change of weight", "tokens"))
