"""Halves of real attention, sums of any size, and rows in which nothing may be attended to."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery

_NAMES = ("out", "lse")


def call(m: Any, out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> Any:
    return tuple(m.merge(out_a, lse_a, out_b, lse_b))


def inputs(draw: Draw) -> dict[str, Any]:
    B, H, L, E = draw.sizes(4)
    return {
        "out_a": draw.normal(B, H, L, E),
        "lse_a": draw.normal(B, H, L, scale=2.0),
        "out_b": draw.normal(B, H, L, E),
        "lse_b": draw.normal(B, H, L, scale=2.0),
    }


def call_halves(m: Any, scores: Tensor, values: Tensor, split: int) -> Any:
    parts = []
    for s, v in zip(scores.tensor_split([split], -1), values.tensor_split([split]), strict=True):
        top = s.amax(-1, keepdim=True)
        exps = (s - top).exp()
        total = exps.sum(-1, keepdim=True)
        parts += [exps @ v / total, (top + total.log())[..., 0]]
    return tuple(m.merge(*parts))


def without(given: dict[str, Any], blocks: str) -> dict[str, Any]:
    """The second row has nothing to attend to in these blocks."""
    found = {name: value.clone() for name, value in given.items()}
    for block in blocks:
        found[f"out_{block}"][..., 1, :] = 0.0
        found[f"lse_{block}"][..., 1] = -torch.inf
    return found


def cases(draw: Draw) -> Iterator[Case]:
    yield from battery(
        draw, inputs, call, names=_NAMES, variants=("values", "strided", "gradient", "float32")
    )
    for split in (1, 3, 5):
        halves = {"scores": draw.normal(4, 7, scale=3.0), "values": draw.normal(7, 3)}
        yield Case("halves", call_halves, {**halves, "split": split}, _NAMES)
    large = inputs(draw)
    high = {name: large[name] + 900.0 for name in ("lse_a", "lse_b")}
    yield Case("large", call, {**large, **high}, _NAMES)
    low = {name: large[name] - 900.0 for name in ("lse_a", "lse_b")}
    yield Case("large", call, {**large, **low}, _NAMES)
    for blocks in ("a", "b"):
        yield Case("one_empty", call, without(inputs(draw), blocks), _NAMES)
    yield Case("both_empty", call, without(inputs(draw), "ab"), _NAMES)
