"""Answers with prompts and padding around them; pairs near and far."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw, battery


def call_answers(m: Any, logits: Tensor, tokens: Tensor, mask: Tensor) -> Any:
    return m.answer_log_p(logits, tokens, mask)


def call_loss(
    m: Any, better: Tensor, worse: Tensor, ref_better: Tensor, ref_worse: Tensor, beta: float
) -> Any:
    return m.dpo_loss(better, worse, ref_better, ref_worse, beta)


def draw_answers(draw: Draw) -> dict[str, Any]:
    B, L, V = draw.sizes(3, low=4, high=9)
    return {
        "logits": draw.normal(B, L, V, scale=2.0),
        "tokens": draw.integers(0, V, B, L),
        "mask": draw.mask(B, L),
    }


def draw_pairs(draw: Draw) -> dict[str, Any]:
    B = draw.size(3, 6)
    names = ("better", "worse", "ref_better", "ref_worse")
    beta = draw.choice([0.1, 0.3, 0.5])
    return {**{name: -20 + draw.normal(B, scale=4.0) for name in names}, "beta": beta}


def cases(draw: Draw) -> Iterator[Case]:
    for _ in range(2):
        yield Case("answers", call_answers, draw_answers(draw), ("log_p",))
    yield from battery(draw, draw_answers, call_answers, names=("log_p",), variants=("gradient",))
    same = draw_pairs(draw)
    same |= {"ref_better": same["better"].clone(), "ref_worse": same["worse"].clone()}
    yield Case("start", call_loss, same, ("loss",))
    yield from battery(
        draw, draw_pairs, call_loss, names=("loss",), variants=("values", "gradient", "float32")
    )
    far = draw_pairs(draw)
    far["better"] = far["better"] + torch.tensor([-9000.0, 9000.0] + [0.0] * 4)[: len(far["worse"])]
    yield Case("far", call_loss, far, ("loss",))
