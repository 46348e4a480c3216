"""Few tokens, so that they occur several times and next to one another."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from glassformer.school.practice.cases import Case, Draw


def call(m: Any, tokens: Tensor) -> Any:
    return m.induction_mask(tokens)


def cases(draw: Draw) -> Iterator[Case]:
    once = draw.normal(9).argsort()[: draw.size(4, 6)]
    yield Case("repeated", call, {"tokens": torch.cat([once, once])}, ("mask",))
    for n in (3, 4):
        tokens = torch.cat([draw.integers(0, n, 9), torch.tensor([1, 1, 0])])
        yield Case("random", call, {"tokens": tokens}, ("mask",))
    yield Case("once", call, {"tokens": draw.normal(7).argsort()}, ("mask",))
