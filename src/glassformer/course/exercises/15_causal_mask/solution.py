"""A triangle, aligned at the bottom right."""

import math

import torch
from torch import Tensor


def causal_mask(n_queries: int, n_keys: int) -> Tensor:
    """mask[i, j] = j ≤ n_keys − n_queries + i"""
    everything = torch.ones(n_queries, n_keys, dtype=torch.bool)
    return everything.tril(diagonal=n_keys - n_queries)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """out = softmax(q kᵀ / √D where the mask is True, −∞ elsewhere) v"""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., L, S)
    mask = causal_mask(q.shape[-2], k.shape[-2])
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1) @ v
