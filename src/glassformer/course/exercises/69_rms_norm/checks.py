"""The usual battery, a norm as it is built, and a token of zeros, which only eps saves from 0/0."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3, low=3)
    return {"x": draw.normal(B, L, C) + 2, "dim": C, "eps": draw.choice([0.01, 0.1, 0.3])}


def build(m: Any, dim: int, eps: float) -> nn.Module:
    return m.RMSNorm(dim, eps)


def run_fresh(m: Any, x: Tensor, dim: int, eps: float) -> Any:
    return build(m, dim, eps).double()(x)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, lambda model, x: model(x), build=build)
    yield Case("fresh", run_fresh, inputs(draw), ("y",))
    zeros = inputs(draw)
    yield Case("zeros", run_fresh, {**zeros, "x": torch.zeros_like(zeros["x"])}, ("y",))
