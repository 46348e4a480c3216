"""One slice of the width for each head."""

from torch import Tensor


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(B, L, C) → (B, H, L, D), where C = H · D"""
    slices = x.unflatten(-1, (n_heads, -1))  # (B, L, C) → (B, L, H, D)
    return slices.transpose(1, 2)  # (B, L, H, D) → (B, H, L, D)
