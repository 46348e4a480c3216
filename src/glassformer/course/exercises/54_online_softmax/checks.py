"""Blocks of different widths, read once; rising, falling, very large; the memory in use."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw
from glassformer.school.practice.example_modules import Largest


def call(m: Any, scores: Tensor, widths: list[int]) -> Any:
    return tuple(m.online_softmax(block.clone() for block in scores.split(widths, dim=1)))


def measure_largest_tensor(m: Any, scores: Tensor, widths: list[int]) -> str:
    with Largest() as mode:
        m.online_softmax(block for block in scores.split(widths, dim=1))
    # Twice a block leaves room to work in; S is five blocks.
    return "≤ 2 × L × n" if mode.size <= 2 * len(scores) * max(widths) else "> 2 × L × n"


def draw_blocks(draw: Draw, scale: float = 1.0, slope: float = 0.0) -> dict[str, Any]:
    L, widths = draw.size(3, 6), draw.sizes(4, low=2, high=6)
    scores = draw.normal(L, sum(widths), scale=scale)
    return {"scores": scores + slope * torch.arange(sum(widths)), "widths": widths}


def cases(draw: Draw) -> Iterator[Case]:
    names = ("top", "total")
    for _ in range(3):
        yield Case("values", call, draw_blocks(draw), names)
    below = draw_blocks(draw)  # nothing is as large as 0
    yield Case("values", call, {**below, "scores": below["scores"] - 9.0}, names)
    yield Case("rising", call, draw_blocks(draw, slope=0.4), names)
    yield Case("falling", call, draw_blocks(draw, slope=-0.4), names)
    yield Case("large", call, draw_blocks(draw, scale=900.0), names)
    float32 = draw_blocks(draw)
    yield Case("float32", call, {**float32, "scores": float32["scores"].float()}, names, 1e-3)
    many = {"scores": draw.normal(7, 40), "widths": [8] * 5}
    yield Case("whole", measure_largest_tensor, many, ("numel",))
