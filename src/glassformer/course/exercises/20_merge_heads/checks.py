"""Batch, heads, length and width all differ, so that each mix-up shows."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, H, L, D = draw.sizes(4)
    return {"x": draw.normal(B, H, L, D)}


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, lambda m, x: m.merge_heads(x), names=("merged",))
