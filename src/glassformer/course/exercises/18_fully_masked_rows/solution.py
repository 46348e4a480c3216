"""Masked attention whose fully masked rows are zero."""

import math

from torch import Tensor


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """A row without any True in the mask has zero weights and a zero output."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., L, S)
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    # Rows of −∞ are NaN now. The second fill sets them to 0 and blocks their gradient.
    weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights
