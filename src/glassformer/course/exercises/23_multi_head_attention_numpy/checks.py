"""Ordinary numbers, on which every weight counts; large ones; one head, and heads of width 1."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    L, H, D = draw.sizes(3)
    Q, K, V = (draw.array(L, H * D) for _ in range(3))
    return {"Q": Q, "K": K, "V": V, "n_heads": H}


def call(m: Any, Q: Any, K: Any, V: Any, n_heads: int) -> Any:
    return m.multi_head_attention(Q, K, V, n_heads)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call)
    yield Case("single", call, {**inputs(draw), "n_heads": 1}, ("out",))
    narrow = inputs(draw)
    yield Case("narrow", call, {**narrow, "n_heads": narrow["Q"].shape[1]}, ("out",))
    large = inputs(draw)
    large = {name: 60 * value if name in "QK" else value for name, value in large.items()}
    yield Case("large", call, large, ("out",))
