"""Blocks that divide S and that do not; scores that would overflow; no tensor of L × S."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery
from glassformer.school.practice.example_modules import Largest


def inputs(draw: Draw) -> dict[str, Any]:
    B, L, D, E = draw.sizes(4)
    block = draw.size(2, 4)
    S = 2 * block + draw.size(1, block - 1)
    q, k, v = draw.normal(B, L, D), draw.normal(B, S, D), draw.normal(B, S, E)
    return {"q": 2 * q, "k": k, "v": v, "block": block}


def call(m: Any, q: Tensor, k: Tensor, v: Tensor, block: int) -> Any:
    return tuple(m.flash_attention(q, k, v, block))


def measure_largest_tensor(m: Any, q: Tensor, k: Tensor, v: Tensor, block: int) -> str:
    with Largest() as mode:
        m.flash_attention(q, k, v, block)
    return "< L × S" if mode.size < q.shape[0] * k.shape[0] else "≥ L × S"


def cases(draw: Draw) -> Iterator[Case]:
    names = ("out", "lse")
    yield from battery(draw, inputs, call, names=names, skip=("bfloat16",))
    for block in (1, 4, 100):
        B, H, L, D, E = draw.sizes(5)
        given = {"q": draw.normal(B, H, L, D), "k": draw.normal(B, H, 8, D)}
        yield Case("block", call, {**given, "v": draw.normal(B, H, 8, E), "block": block}, names)
    large = inputs(draw)
    S, rising = large["k"].shape[1], large["k"].abs()
    rising = rising + 2000 * torch.arange(1, S + 1)[:, None]
    for k in (rising, rising.flip(1)):  # the largest score is last, then first
        yield Case("large", call, {**large, "q": large["q"].abs(), "k": k}, names)
    long = {"q": draw.normal(50, 4), "k": draw.normal(60, 4), "v": draw.normal(60, 3), "block": 8}
    yield Case("whole", measure_largest_tensor, long, ("numel",))
