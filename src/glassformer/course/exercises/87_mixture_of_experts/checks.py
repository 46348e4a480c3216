"""Few experts, so that most are chosen; all sizes differ; NaN where nobody may look."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery

_NAMES = ("out",)


def inputs(draw: Draw) -> dict[str, Any]:
    C, F, N = draw.sizes(3, low=4, high=8)
    return {
        "x": draw.normal(11, C),
        "router": draw.normal(N, C),
        "up": draw.normal(N, F, C),
        "down": draw.normal(N, C, F),
    }


def call(m: Any, x: Tensor, router: Tensor, up: Tensor, down: Tensor) -> Any:
    return m.mixture(x, router, up, down, 2)


def call_with(m: Any, x: Tensor, router: Tensor, up: Tensor, down: Tensor, k: int) -> Any:
    return m.mixture(x, router, up, down, k)


def hide_experts(given: dict[str, Any], k: int) -> dict[str, Any]:
    """Two experts that no token chooses, because their logits are the lowest; they hold NaN."""
    x = given["x"].abs()
    router, up, down = (given[name].clone() for name in ("router", "up", "down"))
    router[:2] = -9.0
    up[:2], down[:2] = torch.nan, torch.nan
    return {"x": x, "router": router, "up": up, "down": down, "k": k}


def cases(draw: Draw) -> Iterator[Case]:
    kinds = ("values", "strided", "gradient", "float32")
    yield from battery(draw, inputs, call, names=_NAMES, variants=kinds)
    yield Case("one", call_with, {**inputs(draw), "k": 1}, _NAMES)
    three = inputs(draw)
    yield Case("values", call_with, {**three, "k": 3}, _NAMES)
    every = inputs(draw)
    yield Case("every", call_with, {**every, "k": len(every["router"])}, _NAMES)
    yield Case("unchosen", call_with, hide_experts(inputs(draw), 2), _NAMES)
