"""First attend alone, then the whole class."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, H, D = draw.sizes(4, high=6)
    return {"x": draw.normal(B, L, H * D), "d_model": H * D, "n_heads": H}


def attend(m: Any, q: Tensor, k: Tensor, v: Tensor) -> Any:
    _, H, _, D = q.shape
    return m.SelfAttention(H * D, H).attend(q, k, v)


def cases(draw: Draw) -> Iterator[Case]:
    B, H, L, D = draw.sizes(4, high=6)
    q, k, v = (draw.normal(B, H, L, D) for _ in range(3))
    yield Case("attend", attend, {"q": q, "k": k, "v": v}, ("out", "weights"))
    yield from battery(
        draw,
        inputs,
        lambda model, x: model(x),
        build=lambda m, d_model, n_heads: m.SelfAttention(d_model, n_heads),
    )
