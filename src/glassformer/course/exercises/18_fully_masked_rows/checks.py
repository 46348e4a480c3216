"""Masks in which some rows allow nothing; values and gradients."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, S, D, E = draw.sizes(5)
    mask = draw.mask(B, L, S)
    mask[0, 0], mask[-1, -1] = False, False
    return {
        "q": draw.normal(B, L, D),
        "k": draw.normal(B, S, D),
        "v": draw.normal(B, S, E),
        "mask": mask,
    }


def call(m: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Any:
    return m.masked_attention(q, k, v, mask)


def cases(draw: Draw) -> Iterator[Case]:
    names = ("out", "weights")
    yield from battery(draw, inputs, call, names=names)
    nothing = inputs(draw)
    nothing["mask"] = torch.zeros_like(nothing["mask"])
    yield Case("masked", call, nothing, names)
    padded = inputs(draw)
    padded["mask"] = draw.mask(padded["q"].shape[0], 1, padded["k"].shape[1])
    yield Case("padding", call, padded, names)
