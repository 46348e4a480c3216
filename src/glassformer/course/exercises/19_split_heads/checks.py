"""Batch, length, heads and width all differ, so that each mix-up shows."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, H, D = draw.sizes(4)
    return {"x": draw.normal(B, L, H * D), "n_heads": H}


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw, inputs, lambda m, x, n_heads: m.split_heads(x, n_heads), names=("heads",)
    )
