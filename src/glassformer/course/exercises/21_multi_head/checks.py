"""The four parameters are filled by name; heads, width, length and batch all differ."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, H, D = draw.sizes(4, high=6)
    return {"x": draw.normal(B, L, H * D), "dim": H * D, "n_heads": H}


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw,
        inputs,
        lambda model, x: model(x),
        build=lambda m, dim, n_heads: m.MultiHead(dim, n_heads),
        names=("out", "weights"),
    )
