"""Random routers, routers that agree on one expert, and capacities from nothing to enough."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def inputs(draw: Draw) -> dict[str, Any]:
    return {"logits": draw.normal(13, draw.size(4, 7), scale=1.5)}


def call(m: Any, logits: Tensor) -> Any:
    return m.balance_loss(logits, 2)


def call_with(m: Any, logits: Tensor, k: int) -> Any:
    return m.balance_loss(logits, k)


def call_fits(m: Any, experts: Tensor, n_experts: int, capacity: int) -> Any:
    return m.fits(experts, n_experts, capacity)


def draw_choices(draw: Draw, k: int) -> dict[str, Any]:
    """k different experts for each token; the last expert is rarely the first choice."""
    N = draw.size(4, 6)
    return {"experts": draw.normal(9, N).topk(k, dim=-1).indices, "n_experts": N}


def cases(draw: Draw) -> Iterator[Case]:
    loss = ("loss",)
    yield from battery(draw, inputs, call, names=loss, variants=("values", "strided", "gradient"))
    for k in (1, 3):
        yield Case("values", call_with, {**inputs(draw), "k": k}, loss)
    N = draw.size(3, 6)
    even = 3.0 * torch.eye(N, dtype=torch.float64).repeat(2, 1)
    yield Case("even", call_with, {"logits": even, "k": 1}, loss)
    agreed = draw.normal(7, N)
    agreed[:, 1] += 30.0
    yield Case("one_expert", call_with, {"logits": agreed, "k": 1}, loss)
    for k, capacity in ((1, 2), (2, 3), (2, 4), (3, 5)):
        given = {**draw_choices(draw, k), "capacity": capacity}
        yield Case("within", call_fits, given, ("fits",))
    yield Case("none", call_fits, {**draw_choices(draw, 2), "capacity": 0}, ("fits",))
