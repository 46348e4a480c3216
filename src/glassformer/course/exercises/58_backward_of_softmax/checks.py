"""Weights of random scores, with batch and heads, and weights that are 0 or 1."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def weights_of(scores: Tensor) -> Tensor:
    """Softmax."""
    exp = (scores - scores.amax(-1, keepdim=True)).exp()
    return exp / exp.sum(-1, keepdim=True)


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S = draw.sizes(3, low=3)
    return {"weights": weights_of(draw.normal(B, L, S)), "grad": draw.normal(B, L, S)}


def call(m: Any, weights: Tensor, grad: Tensor) -> Any:
    return m.softmax_backward(weights, grad)


def cases(draw: Draw) -> Iterator[Case]:
    kinds = ("values", "strided", "float32", "bfloat16", "batch")
    yield from battery(draw, inputs, call, names=("gradient",), variants=kinds)
    B, H, L, S = draw.sizes(4, low=3)
    given = {"weights": weights_of(draw.normal(B, H, L, S)), "grad": draw.normal(B, H, L, S)}
    yield Case("heads", call, given, ("gradient",))
    sharp = {"weights": weights_of(draw.normal(L, S, scale=2000)), "grad": draw.normal(L, S)}
    yield Case("large", call, sharp, ("gradient",))
