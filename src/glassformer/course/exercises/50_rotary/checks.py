"""Values, large positions, and scores that do not change if all positions shift."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    B, H, L, P = draw.sizes(4)
    start = draw.size(3, 9)
    q, k = draw.normal(B, H, L, 2 * P), draw.normal(B, H, L, 2 * P)
    places = [start + n * draw.size(1, 3) for n in range(L)]
    return {"q": q, "k": k, "places": places, "base": draw.choice([100.0, 1000.0, 10000.0])}


def call(m: Any, q: Tensor, k: Tensor, places: list[int], base: float) -> Any:
    return tuple(m.rotary(q, k, torch.tensor(places), base))


def distance(m: Any, q: Tensor, k: Tensor, places: list[int], base: float) -> Tensor:
    def scores(shift: int) -> Tensor:
        rotated_q, rotated_k = m.rotary(q, k, torch.tensor(places) + shift, base)
        return rotated_q @ rotated_k.transpose(-2, -1)

    return scores(0) - scores(11)


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(draw, inputs, call, names=("q", "k"))
    yield Case("distance", distance, inputs(draw), ("difference",), tolerance=1e-3)
    far = inputs(draw)
    places = [place * 1000 for place in far["places"]]
    yield Case("far", call, {**far, "places": places}, ("q", "k"), tolerance=1e-2)
