"""One-hot tokens; width and length differ."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, x: Tensor) -> Any:
    return m.predict_next(x)


def call_previous(m: Any, x: Tensor) -> Any:
    return m.previous_head(x)


def one_hot(tokens: Tensor, V: int) -> Tensor:
    return torch.eye(V, dtype=torch.float64)[tokens]


def cases(draw: Draw) -> Iterator[Case]:
    x = one_hot(draw.integers(0, 7, 10), 7)
    yield Case("previous", call_previous, {"x": x}, ("before",))
    once = draw.normal(9).argsort()[: draw.size(4, 6)]
    yield Case("repeated", call, {"x": one_hot(torch.cat([once, once]), 9)}, ("next",))
    for n in (3, 4):
        yield Case("several", call, {"x": one_hot(draw.integers(0, n, 12), n)}, ("next",))
    yield Case("none", call, {"x": one_hot(draw.normal(6).argsort(), 8)}, ("next",))
