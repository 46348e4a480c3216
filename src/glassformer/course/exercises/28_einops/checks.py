"""L and S differ, and the number of heads never equals their width."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, H, D = draw.sizes(5, high=6)
    q, k, v = draw.normal(B, L, H * D), draw.normal(B, S, H * D), draw.normal(B, S, H * D)
    return {"q": q, "k": k, "v": v, "n_heads": H}


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, lambda m, q, k, v, n_heads: m.multi_head(q, k, v, n_heads))
