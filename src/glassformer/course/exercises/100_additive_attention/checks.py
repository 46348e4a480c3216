"""Sources with padding, sizes that all differ, and states that must change the weights."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def call(m: Any, **given: Tensor) -> Any:
    return m.additive_attention(**given)


def change_of_weights(m: Any, hidden: Tensor, **given: Tensor) -> Any:
    """By how much the weights differ between two decoder states."""
    _, weights = m.additive_attention(hidden=hidden, **given)
    return weights[:, 1:] - weights[:, :1]


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, C, D, E = draw.sizes(6)
    return {
        "hidden": draw.normal(B, L, C),
        "context": draw.normal(B, S, E),
        "w_q": draw.normal(C, D),
        "w_k": draw.normal(E, D),
        "v": draw.normal(D, scale=2.0),
        "mask": draw.mask(B, S),
    }


def cases(draw: Draw) -> Iterator[Case]:
    variants = ("values", "strided", "gradient", "float32")
    yield from battery(draw, inputs, call, names=("out", "weights"), variants=variants)
    yield Case("query", change_of_weights, inputs(draw), ("change of the weights",))
    given = inputs(draw)
    given["context"] = given["context"].masked_fill(~given["mask"][..., None], 1000.0)
    yield Case("padding", call, given, ("out", "weights"))
