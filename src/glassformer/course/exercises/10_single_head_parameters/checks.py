"""The parameters by name, then everything computed from them."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C, D = draw.sizes(4)
    return {"x": draw.normal(B, L, C), "dim": C, "head_dim": D}


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw,
        inputs,
        lambda model, x: model(x),
        build=lambda m, dim, head_dim: m.SingleHead(dim, head_dim),
        names=("out", "weights"),
    )
