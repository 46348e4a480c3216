"""The parts are made here: heads that can be masked, two linear layers, a dropout that is fixed."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.practice.cases import Case, Draw, battery
from glassformer.practice.parts import Attention, FeedForward


class FixedDropout(nn.Module):
    """Drops every third number, always the same ones."""

    def forward(self, x: Tensor) -> Tensor:
        kept = torch.arange(x.shape[-1], device=x.device) % 3 != 1
        return x * kept / 0.5


def build(m: Any, dim: int, n_heads: int, hidden_dim: int, drops: bool) -> nn.Module:
    dropout = FixedDropout() if drops else nn.Identity()
    return m.EncoderLayer(Attention(dim, n_heads), FeedForward(dim, hidden_dim), dim, dropout)


def inputs(draw: Draw, drops: bool = False) -> dict[str, Any]:
    B, L, D, F = draw.sizes(4)
    H = draw.choice([1, 2, 3])
    sizes = {"dim": H * D, "n_heads": H, "hidden_dim": F, "drops": drops}
    return {"x": draw.normal(B, L, H * D), "mask": draw.mask(B, 1, L), **sizes}


def cases(draw: Draw) -> Iterator[Case]:
    call = lambda model, x, mask: model(x, mask)  # noqa: E731
    yield from battery(draw, inputs, call, build=build, skip=("bfloat16",))
    yield from _dropped(draw, call)


def _dropped(draw: Draw, call: Any) -> Iterator[Case]:
    dropping = battery(draw, lambda d: inputs(d, True), call, build=build, variants=("values",))
    for case in dropping:
        yield Case("dropout", case.call, case.inputs, case.names)
