"""The mask for several sizes; attention; and a changed future, which must not change the past."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, D, E, L, S = draw.sizes(5)
    L, S = min(L, S), max(L, S)
    return {"q": draw.normal(B, L, D), "k": draw.normal(B, S, D), "v": draw.normal(B, S, E)}


def change_future(m: Any, x: Tensor, changed: Tensor, place: int) -> Any:
    before = m.causal_attention(x, x, x)[:, :place]
    return before - m.causal_attention(changed, changed, changed)[:, :place]


def cases(draw: Draw) -> Iterator[Case]:
    def mask(m: Any, n_queries: int, n_keys: int) -> Any:
        return m.causal_mask(n_queries, n_keys)

    n = draw.size(3)
    yield Case("mask", mask, {"n_queries": n, "n_keys": n}, ("mask",))
    yield Case("mask", mask, {"n_queries": n, "n_keys": n + draw.size()}, ("mask",))
    yield Case("mask", mask, {"n_queries": 1, "n_keys": n}, ("mask",))

    def attend(m: Any, q: Tensor, k: Tensor, v: Tensor) -> Any:
        return m.causal_attention(q, k, v)

    yield from battery(draw, inputs, attend)
    given = inputs(draw)
    yield Case("values", attend, {name: x[0] for name, x in given.items()}, ("out",))
    heads = {name: x[:, None] for name, x in given.items()}  # (B, 1, L, D)
    yield Case("values", attend, heads, ("out",))
    B, L, D = draw.sizes(3, low=4)
    x, place = draw.normal(B, L, D), L // 2
    changed = x.clone()
    changed[:, place:] = draw.normal(B, L - place, D)
    given = {"x": x, "changed": changed, "place": place}
    yield Case("future", change_future, given, ("difference",))
