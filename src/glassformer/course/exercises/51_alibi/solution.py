"""Distant keys count less; each head has its own slope."""

import torch
from torch import Tensor


def alibi(n_heads: int, n_queries: int, n_keys: int) -> Tensor:
    """bias[h, i, j] = −2^(−8 (h + 1) / H) · |(S − L + i) − j|"""
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)  # (H,): steep to flat
    places = torch.arange(n_keys - n_queries, n_keys)  # (L,): queries are the last tokens
    distance = (places[:, None] - torch.arange(n_keys)).abs()  # (L, S)
    return -slopes[:, None, None] * distance  # (H, L, S)
