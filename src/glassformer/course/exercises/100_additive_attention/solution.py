"""Attention whose scores are made by a small network (Bahdanau et al. 2015)."""

import math

from torch import Tensor


def additive_attention(
    hidden: Tensor, context: Tensor, w_q: Tensor, w_k: Tensor, v: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor]:
    """States (B, L, C) and source words (B, S, E) → out (B, L, E), weights (B, L, S)"""
    q, k = hidden @ w_q, context @ w_k
    pairs = q[:, :, None] + k[:, None]  # (B, L, S, D): each state with each source word
    scores = pairs.tanh() @ v
    scores = scores.masked_fill(~mask[:, None], -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ context, weights
