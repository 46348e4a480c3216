"""A nonlinear sublayer that mixes features, and one that adds nothing."""

from collections.abc import Iterator
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def sublayer(x: Tensor) -> Tensor:
    return x.roll(1, dims=-1).tanh() + 0.3 * x.square()


def norm(x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:])


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3, low=3)
    return {"x": 1 + 2 * draw.normal(B, L, C)}


def call_both(m: Any, x: Tensor) -> Any:
    return m.post_norm(x, sublayer, norm), m.pre_norm(x, sublayer, norm)


def add_nothing(m: Any, x: Tensor) -> Any:
    return m.post_norm(x, lambda y: 0 * y, norm), m.pre_norm(x, lambda y: 0 * y, norm)


def cases(draw: Draw) -> Iterator[Case]:
    names = ("post_norm", "pre_norm")
    yield from battery(draw, inputs, call_both, names=names)
    yield Case("nothing", add_nothing, inputs(draw), names)
