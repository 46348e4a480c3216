"""Several cells of random attention, of huge scores, and of a row too long to compute."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw
from glassformer.school.practice.example_modules import Largest


def draw_inputs(draw: Draw, scale: float = 1.0, n_keys: int = 0) -> dict[str, Any]:
    B, H, L, S, D = draw.sizes(5)
    q, k = draw.normal(B, H, L, D, scale=scale), draw.normal(B, H, n_keys or S, D, scale=scale)
    lse = (q @ k.transpose(-2, -1) / math.sqrt(D)).logsumexp(-1)
    sizes = (B, H, L, n_keys or S)
    cells = [[draw.size(0, size - 1) for size in sizes] for _ in range(8)]
    return {"q": q, "k": k, "lse": lse, "cells": cells}


def call(m: Any, q: Tensor, k: Tensor, lse: Tensor, cells: list[list[int]]) -> Any:
    return [m.weight(q, k, lse, *cell) for cell in cells]


def measure_largest_tensor(
    m: Any, q: Tensor, k: Tensor, lse: Tensor, cells: list[list[int]]
) -> str:
    with Largest() as mode, torch.no_grad():
        call(m, q, k, lse, cells)
    return "< S" if mode.size < k.shape[2] else "≥ S"


def _highest(q: Tensor, k: Tensor) -> list[list[int]]:
    """The cells with the highest scores of all, where exp would overflow."""
    scores = q @ k.transpose(-2, -1)  # (B, H, L, S)
    places = scores.flatten().topk(4).indices
    return torch.stack(torch.unravel_index(places, scores.shape), dim=1).tolist()


def cases(draw: Draw) -> Iterator[Case]:
    for _ in range(3):
        yield Case("values", call, draw_inputs(draw), ("weights",))
    large = draw_inputs(draw, scale=60.0)
    yield Case("large", call, {**large, "cells": _highest(large["q"], large["k"])}, ("weights",))
    yield Case("small", measure_largest_tensor, draw_inputs(draw, n_keys=50), ("numel",))
