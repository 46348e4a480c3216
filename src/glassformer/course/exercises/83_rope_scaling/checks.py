"""Frequencies are compared as angles at position 1000, where the slow ones count as well."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def call_linear(m: Any, frequencies: Tensor, factor: float) -> Any:
    return m.linear(frequencies, factor) * 1000


def call_ntk(m: Any, frequencies: Tensor, factor: float) -> Any:
    return m.ntk(frequencies, factor) * 1000


def call_by_parts(
    m: Any, frequencies: Tensor, factor: float, original_len: int, low: float, high: float
) -> Any:
    return m.by_parts(frequencies, factor, original_len, low, high) * 1000


def draw_frequencies(draw: Draw) -> Tensor:
    P = draw.size(6, 10)
    return draw.choice([100.0, 1000.0]) ** -(torch.arange(P, dtype=torch.float64) / P)


def cases(draw: Draw) -> Iterator[Case]:
    for name, call in (("linear", call_linear), ("ntk", call_ntk)):
        for _ in range(2):
            given = {"frequencies": draw_frequencies(draw), "factor": draw.choice([2.0, 5.0, 8.0])}
            yield Case(name, call, given, ("angles",), tolerance=1e-4)
    for _ in range(3):
        given = {
            "frequencies": draw_frequencies(draw),
            "factor": draw.choice([2.0, 5.0, 8.0]),
            "original_len": draw.choice([90, 150, 230]),
            "low": draw.choice([1.0, 2.0]),
            "high": draw.choice([4.0, 7.0, 12.0]),
        }
        yield Case("by_parts", call_by_parts, given, ("angles",), tolerance=1e-4)
    turns = torch.tensor([32.0, 8.0, 6.5, 3.0, 2.0, 1.0], dtype=torch.float64)
    ends = {"frequencies": turns * 2 * math.pi / 120, "factor": 4.0, "original_len": 120}
    given = {**ends, "low": 2.0, "high": 8.0}
    yield Case("ends", call_by_parts, given, ("angles",), tolerance=1e-4)
