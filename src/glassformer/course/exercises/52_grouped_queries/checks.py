"""Groups of two and three; one group; as many groups as heads."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def draw_inputs(draw: Draw, n_groups: int, n: int) -> dict[str, Any]:
    B, L, S, D = draw.sizes(4, low=3)
    k, v = draw.normal(B, n_groups, S, D), draw.normal(B, n_groups, S, D)
    return {"q": draw.normal(B, n_groups * n, L, D), "k": k, "v": v}


def inputs(draw: Draw) -> dict[str, Any]:
    return draw_inputs(draw, draw.choice([2, 3]), draw.choice([2, 3, 4]))


def call(m: Any, q: Tensor, k: Tensor, v: Tensor) -> Any:
    return m.grouped_attention(q, k, v)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call)
    yield Case("one_group", call, draw_inputs(draw, 1, 4), ("out",))
    yield Case("every", call, draw_inputs(draw, 4, 1), ("out",))
