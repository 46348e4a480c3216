import math

import torch


def absorb(q, w_uk):
    """Queries that score latents instead of keys: (B, H, L, D), (H, D, R) → (B, H, L, R)"""
    ...


def latent_attention(q, c, w_uk, w_uv):
    """softmax(q kᵀ / √D) v with k = W_UK c and v = W_UV c, from the latents c (B, S, R)"""
    ...
