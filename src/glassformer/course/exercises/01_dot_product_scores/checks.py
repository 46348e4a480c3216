"""With a batch, without one, and with batch and heads."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, D = draw.sizes(4)
    return {"q": draw.normal(B, L, D), "k": draw.normal(B, S, D)}


def call(m: Any, q: Any, k: Any) -> Any:
    return m.scores(q, k)


def cases(draw: Draw) -> Iterator[Case]:
    L, S, D = draw.sizes(3)
    yield Case("example", call, {"q": draw.normal(L, D), "k": draw.normal(S, D)}, ("scores",))
    yield from battery(draw, inputs, call, names=("scores",))
    B, H, L, S, D = draw.sizes(5)
    heads = {"q": draw.normal(B, H, L, D), "k": draw.normal(B, H, S, D)}
    yield Case("heads", call, heads, ("scores",))
