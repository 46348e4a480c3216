"""Attention, with the scores divided and not rounded."""

import math

from torch import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """out = softmax(q kᵀ / √D) v; returns (out, weights)"""
    D = q.shape[-1]
    scores = q @ k.transpose(-2, -1) / math.sqrt(D)  # (..., L, D) → (..., L, S)
    weights = scores.softmax(dim=-1)
    out = weights @ v  # (..., L, S) × (..., S, E) → (..., L, E)
    return out, weights
