"""Attention in three lines."""

import math

from torch import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """out = softmax(q kᵀ / √D) v"""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., L, D) → (..., L, S)
    weights = scores.softmax(dim=-1)  # over the keys: each row sums to 1
    return weights @ v  # (..., L, S) × (..., S, E) → (..., L, E)
