"""A query sees itself and the keys just before it."""

import torch
from torch import Tensor


def sliding_window(n_queries: int, n_keys: int, window: int) -> Tensor:
    """mask[i, j] = 0 ≤ (S − L + i) − j < window"""
    places = torch.arange(n_keys - n_queries, n_keys)  # (L,): queries are the last tokens
    distance = places[:, None] - torch.arange(n_keys)  # (L, S): how far back
    return (distance >= 0) & (distance < window)
