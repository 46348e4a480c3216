"""Attention on cached latents: no key and no value of a head is ever formed."""

import math

from torch import Tensor


def absorb(q: Tensor, w_uk: Tensor) -> Tensor:
    """Queries that score latents instead of keys: (B, H, L, D), (H, D, R) → (B, H, L, R)"""
    return q @ w_uk  # q · (W c) = (Wᵀ q) · c


def latent_attention(q: Tensor, c: Tensor, w_uk: Tensor, w_uv: Tensor) -> Tensor:
    """softmax(q kᵀ / √D) v with k = W_UK c and v = W_UV c, from the latents c (B, S, R)"""
    c = c[:, None]  # (B, 1, S, R): one "key-value head", which all heads share
    scores = absorb(q, w_uk) @ c.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L, S)
    mixed = scores.softmax(dim=-1) @ c  # (B, H, L, R): a mean of latents
    return mixed @ w_uv.transpose(-2, -1)  # (H, R, E) → (B, H, L, E)
