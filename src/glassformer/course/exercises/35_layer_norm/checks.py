"""A large eps, so that its position shows; a token of equal numbers; two dimensions."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, C = draw.sizes(3, low=3)
    eps = draw.choice([0.1, 0.3, 0.5])
    return {"x": 2 + draw.normal(B, L, C), "dim": C, "eps": eps}


def run_with_weights(m: Any, x: Tensor, key: int) -> Any:
    return Draw(key).weights(m.LayerNorm(x.shape[-1]).double())(x)


def read_initial_parameters(m: Any, dim: int) -> Any:
    model = m.LayerNorm(dim)
    return {name: p.detach() for name, p in model.named_parameters()}


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw,
        inputs,
        lambda model, x: model(x),
        build=lambda m, dim, eps: m.LayerNorm(dim, eps=eps),
    )
    B, L, C = draw.sizes(3, low=3)
    yield Case("fresh", read_initial_parameters, {"dim": C}, ("parameters",))
    x = draw.normal(B, L, C)
    x[:, 0] = torch.ones(C)
    yield Case("constant", run_with_weights, {"x": x, "key": draw.key()}, ("out",))
    yield Case("no_batch", run_with_weights, {"x": draw.normal(L, C), "key": draw.key()}, ("out",))
