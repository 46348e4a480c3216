"""Masked attention that takes nothing where nothing is allowed."""

import math

from torch import Tensor


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """A row of the mask without any True gives weights and output of zero."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., L, S)
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    # Rows of −∞ have become NaN. The second fill puts 0 there, and lets no gradient through.
    weights = weights.masked_fill(~mask, 0.0)
    return weights @ v, weights
