"""Queries and keys, rotated by their positions."""

import torch
from torch import Tensor


def rotary(q: Tensor, k: Tensor, positions: Tensor, base: float = 10000.0) -> tuple[Tensor, Tensor]:
    """(a, b) → (a cos θ − b sin θ, b cos θ + a sin θ),  θ = position · base^(−i / P)"""
    P = q.shape[-1] // 2
    frequencies = base ** -(torch.arange(P, dtype=torch.float64) / P)  # (P,): fast to slow
    # In float64: at large positions, angles in a lower precision are badly off.
    angles = positions.double()[:, None] * frequencies  # (L, P)
    cos, sin = angles.cos(), angles.sin()

    def rotate(x: Tensor) -> Tensor:
        a, b = x.double().chunk(2, dim=-1)  # (B, H, L, D) → (B, H, L, P) twice
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)

    return rotate(q), rotate(k)
