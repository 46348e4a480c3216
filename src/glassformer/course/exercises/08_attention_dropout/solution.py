"""Attention with dropout on the weights, which returns the weights before dropout."""

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
