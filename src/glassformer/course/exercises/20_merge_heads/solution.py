"""The outputs of all heads, concatenated for every token."""

from torch import Tensor


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, L, D) → (B, L, H · D)"""
    # Only adjacent dimensions can be merged, so the heads move next to the width first.
    return x.transpose(1, 2).flatten(2)  # (B, H, L, D) → (B, L, H, D) → (B, L, H·D)
