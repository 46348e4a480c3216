"""Statistics of attention, one chunk of queries at a time."""

import math

import torch
from torch import Tensor


def statistics(q: Tensor, k: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
    """entropy_i = −Σ_j w_ij log w_ij,  received_j = Σ_i w_ij, with w = softmax(q kᵀ / √D)"""
    entropies = []
    received = k.new_zeros(len(k))  # (S,)
    for rows in q.split(chunk):  # (n, D), the last one may be shorter
        scores = rows @ k.T / math.sqrt(q.shape[-1])  # (n, S)
        weights = scores.softmax(dim=-1)
        # log w = score − lse, and the weights sum to 1: no logarithm of 0 is needed.
        entropies.append(scores.logsumexp(dim=-1) - (weights * scores).sum(dim=-1))
        received = received + weights.sum(dim=0)
    return torch.cat(entropies), received
