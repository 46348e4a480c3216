"""Weak to strong smoothing, and logits so large that a logarithm of 0 would show."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, V = draw.sizes(3, low=3, high=9)
    smoothing = draw.choice([0.05, 0.1, 0.2, 0.3])
    targets = draw.integers(0, V, B, L)
    return {"logits": draw.normal(B, L, V, scale=2), "targets": targets, "smoothing": smoothing}


def call(m: Any, logits: Tensor, targets: Tensor, smoothing: float) -> Any:
    return m.smoothed_loss(logits, targets, smoothing)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call, names=("loss",), skip=("bfloat16",))
    large = inputs(draw)
    yield Case("large", call, {**large, "logits": large["logits"] * 1e3}, ("loss",))
