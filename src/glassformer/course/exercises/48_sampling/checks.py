"""Each setting alone, then all together; logits are evenly spaced, so no two are close."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Any:
    return m.probabilities(logits, temperature, top_k, top_p)


def draw_logits(draw: Draw, B: int, V: int) -> Tensor:
    """Rows whose entries are well apart, in random order, none of them sorted."""
    steps = torch.arange(V, dtype=torch.float64) * 0.7 - 1.5
    order = draw.normal(B, V).argsort(-1)
    return steps[order] + 0.1 * draw.normal(B, V).clamp(-2, 2)


def cases(draw: Draw) -> Iterator[Case]:
    settings: list[tuple[str, float, int | None, float | None]] = [
        ("temperature", draw.choice([0.5, 0.7, 1.6, 2.5]), None, None),
        ("top_k", 1.0, draw.size(2, 4), None),
        ("top_p", 1.0, None, draw.choice([0.55, 0.75, 0.9])),
        ("top_p", 1.0, None, 0.05),
        ("all", draw.choice([1.6, 2.0]), draw.size(4, 5), 0.7),
        ("all", draw.choice([0.5, 0.6]), 6, 0.9),
        ("all", draw.choice([1.8, 2.5]), None, 0.6),
    ]
    for name, temperature, top_k, top_p in settings:
        B, V = draw.size(4, 6), draw.size(7, 9)
        given = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        yield Case(name, call, {"logits": draw_logits(draw, B, V), **given}, ("probabilities",))
