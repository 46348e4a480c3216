"""The largest score and the sum, corrected whenever a larger score appears."""

from collections.abc import Iterable

import torch
from torch import Tensor


def online_softmax(blocks: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """top = max score,  total = Σ exp(score − top), of each row, in one pass"""
    top, total = torch.tensor(-torch.inf), torch.tensor(0.0)
    for block in blocks:  # (L, n)
        new = torch.maximum(top, block.amax(dim=-1))  # (L,)
        # The old sum is relative to the old top: one factor rescales all its terms.
        total = total * (top - new).exp() + (block - new[:, None]).exp().sum(dim=-1)
        top = new
    return top, total
