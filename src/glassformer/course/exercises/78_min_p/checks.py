"""Rows of very different certainty, so that one bar for all of them shows."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, logits: Tensor, min_p: float, temperature: float) -> Any:
    return m.min_p_probabilities(logits, min_p, temperature)


def draw_logits(draw: Draw, B: int, V: int) -> Tensor:
    """Well separated logits in random order; the first rows are flat, the last ones steep."""
    steps = torch.arange(V, dtype=torch.float64) * 0.6 - 1.1
    order = draw.normal(B, V).argsort(-1)
    steepness = torch.linspace(0.5, 2.5, B, dtype=torch.float64)[:, None]
    return steps[order] * steepness


def cases(draw: Draw) -> Iterator[Case]:
    settings = [
        *(("sure", draw.choice([0.07, 0.13, 0.22]), 1.0) for _ in range(2)),
        *(("hot", draw.choice([0.07, 0.13]), draw.choice([1.7, 2.6])) for _ in range(2)),
        ("limits", 0.0, 1.0),
        ("limits", 1.0, 0.7),
    ]
    for name, min_p, temperature in settings:
        given = {"min_p": min_p, "temperature": temperature}
        logits = draw_logits(draw, draw.size(4, 6), draw.size(7, 9))
        yield Case(name, call, {"logits": logits, **given}, ("probabilities",))
