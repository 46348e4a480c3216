"""Causal self-attention with a key-value cache."""

import math

import torch
from torch import Tensor, nn

Cache = tuple[Tensor, Tensor]


class CachedAttention(nn.Module):
    """q of the new tokens; k and v of all tokens, old ones from the cache"""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)  # (B, L, C) each
        if cache is not None:
            k = torch.cat([cache[0], k], dim=1)  # (B, S, C): old ones first
            v = torch.cat([cache[1], v], dim=1)
        L, S = q.shape[1], k.shape[1]
        # Query i is at key S − L + i: the diagonal shifts right by the number of old tokens.
        mask = torch.ones(L, S, dtype=torch.bool, device=x.device).tril(S - L)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, L, S)
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        return weights @ v, (k, v)
