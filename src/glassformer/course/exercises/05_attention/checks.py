"""All five sizes differ, so that no dimension can pass for another."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, D, E = draw.sizes(5)
    return {"q": draw.normal(B, L, D), "k": draw.normal(B, S, D), "v": draw.normal(B, S, E)}


def call(m: Any, q: Any, k: Any, v: Any) -> Any:
    return m.attention(q, k, v)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call)
    B, H, L, S, D = draw.sizes(5)
    heads = {
        "q": draw.normal(B, H, L, D),
        "k": draw.normal(B, H, S, D),
        "v": draw.normal(B, H, S, D),
    }
    yield Case("heads", call, heads, ("out",))
    large = {"q": draw.normal(L, D, scale=60), "k": draw.normal(S, D, scale=60)}
    yield Case("large", call, {**large, "v": draw.normal(S, D)}, ("out",))
