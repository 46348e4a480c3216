"""Two lengths and two masks; no masks; and equal lengths, where a mix-up would go unnoticed."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.school.practice.cases import Case, Draw, battery
from glassformer.school.practice.example_modules import Attention, FeedForward


def build(m: Any, dim: int, n_heads: int, hidden_dim: int) -> nn.Module:
    attention, cross = Attention(dim, n_heads), Attention(dim, n_heads)
    return m.DecoderLayer(attention, cross, FeedForward(dim, hidden_dim), dim)


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, D, F = draw.sizes(5)
    return _draw_inputs(draw, B, L, S, D, F)


def _draw_inputs(draw: Draw, B: int, L: int, S: int, D: int, F: int) -> dict[str, Any]:
    H = draw.choice([1, 2, 3])
    x, context = draw.normal(B, L, H * D), draw.normal(B, S, H * D)
    causal = torch.ones(L, L, dtype=torch.bool).tril().expand(B, L, L).clone()
    masks = {"mask": causal, "context_mask": draw.mask(B, 1, S)}
    return {"x": x, "context": context, **masks, "dim": H * D, "n_heads": H, "hidden_dim": F}


def square(draw: Draw) -> dict[str, Any]:
    B, L, D, F = draw.sizes(4, low=3)
    return _draw_inputs(draw, B, L, L, D, F)


def inputs_without_masks(draw: Draw) -> dict[str, Any]:
    given = inputs(draw)
    return {name: value for name, value in given.items() if "mask" not in name}


def call(model: Any, x: Tensor, context: Tensor, mask: Any = None, context_mask: Any = None) -> Any:
    return model(x, context, mask, context_mask)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call, build=build, skip=("bfloat16",))
    for name, given in (("unmasked", inputs_without_masks), ("square", square)):
        for case in battery(draw, given, call, build=build, variants=("values",)):
            yield Case(name, case.call, case.inputs, case.names)
