"""Every query against every key."""

from torch import Tensor


def scores(q: Tensor, k: Tensor) -> Tensor:
    """scores[..., i, j] = q[..., i, :] · k[..., j, :]"""
    return q @ k.transpose(-2, -1)  # (..., L, D) × (..., D, S) → (..., L, S)
