"""Two parts of one softmax, joined without their scores."""

import torch
from torch import Tensor


def merge(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    """(out, lse) of attention over two blocks of keys, from those of each block"""
    top = torch.maximum(lse_a, lse_b)  # (..., L)
    top = top.masked_fill(top == -torch.inf, 0.0)  # −∞ − (−∞) is NaN
    a, b = (lse_a - top).exp(), (lse_b - top).exp()  # the sums of both blocks, at most 1
    total = a + b
    out = a[..., None] * out_a + b[..., None] * out_b  # (..., L, E)
    return out / total.masked_fill(total == 0, 1.0)[..., None], top + total.log()
