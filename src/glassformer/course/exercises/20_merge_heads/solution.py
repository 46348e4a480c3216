"""What the heads found, side by side for every token."""

from torch import Tensor


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, L, D) → (B, L, H · D)"""
    # Only neighbours can be joined, so the heads go back beside the width first.
    return x.transpose(1, 2).flatten(2)  # (B, H, L, D) → (B, L, H, D) → (B, L, H·D)
