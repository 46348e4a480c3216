"""A multi-head checkpoint becomes one with grouped queries."""

from torch import Tensor


def pool_heads(weight: Tensor, n_heads: int, n_kv_heads: int) -> Tensor:
    """Mean of the projections in each group of neighbouring heads: (H · D, C) → (K · D, C)"""
    D = weight.shape[0] // n_heads
    groups = weight.reshape(n_kv_heads, n_heads // n_kv_heads, D, -1)  # (K, H / K, D, C)
    return groups.mean(dim=1).flatten(0, 1)  # (K, D, C) → (K · D, C)
