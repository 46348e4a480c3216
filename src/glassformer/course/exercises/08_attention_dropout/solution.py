"""Attention that returns its weights, and drops some of them on the way to the values."""

import math

from torch import Tensor, nn


def attention(
    q: Tensor, k: Tensor, v: Tensor, dropout: nn.Module | None = None
) -> tuple[Tensor, Tensor]:
    """out = dropout(softmax(q kᵀ / √D)) v; returns (out, weights)"""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., L, D) → (..., L, S)
    weights = scores.softmax(dim=-1)
    kept = weights if dropout is None else dropout(weights)
    return kept @ v, weights  # rows of `weights` sum to 1, those of `kept` need not
