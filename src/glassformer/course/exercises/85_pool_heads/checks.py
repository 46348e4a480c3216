"""Groups of several sizes, one group, as many groups as heads; and what the keys become."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, weight: Tensor, n_heads: int, n_kv_heads: int) -> Any:
    return m.pool_heads(weight, n_heads, n_kv_heads)


def keys(m: Any, x: Tensor, weight: Tensor, n_heads: int, n_kv_heads: int) -> Any:
    k = x @ m.pool_heads(weight, n_heads, n_kv_heads).T
    return k.unflatten(-1, (n_kv_heads, -1)).transpose(0, 1)


def inputs(draw: Draw, n_kv_heads: int, n: int) -> dict[str, Any]:
    D, C = draw.sizes(2, low=3)
    weight = draw.normal(n_kv_heads * n * D, C)
    return {"weight": weight, "n_heads": n_kv_heads * n, "n_kv_heads": n_kv_heads}


def cases(draw: Draw) -> Iterator[Case]:
    for _ in range(3):
        groups = draw.sizes(2, low=2, high=4)
        yield Case("weights", call, inputs(draw, *groups), ("weight",))
    yield Case("one", call, inputs(draw, 1, draw.size(3, 5)), ("weight",))
    yield Case("all", call, inputs(draw, draw.size(3, 5), 1), ("weight",))
    given = inputs(draw, 2, 3)
    x = draw.normal(5, given["weight"].shape[1])
    yield Case("keys", keys, {"x": x, **given}, ("k",))
