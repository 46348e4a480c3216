"""Three dimensions, one, and four; with a bias and without; square and not."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C, F = draw.sizes(4)
    return {"x": draw.normal(B, L, C), "weight": draw.normal(F, C), "bias": draw.normal(F)}


def call(m: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    return m.linear(x, weight, bias)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call, names=("y",), skip=("batch",))
    with_bias = inputs(draw)
    yield Case("plain", call, {name: with_bias[name] for name in ("x", "weight")}, ("y",))
    C, F = draw.sizes(2)
    one = {"x": draw.normal(C), "weight": draw.normal(F, C), "bias": draw.normal(F)}
    yield Case("one", call, one, ("y",))
    B, L, C = draw.sizes(3)
    square = {"x": draw.normal(B, L, C), "weight": draw.normal(C, C), "bias": draw.normal(C)}
    yield Case("square", call, square, ("y",))
