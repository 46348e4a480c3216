"""Queries and keys turn with their position."""

import torch
from torch import Tensor


def rotary(q: Tensor, k: Tensor, positions: Tensor, base: float = 10000.0) -> tuple[Tensor, Tensor]:
    """(a, b) → (a cos θ − b sin θ, b cos θ + a sin θ),  θ = position · base^(−i / P)"""
    P = q.shape[-1] // 2
    frequencies = base ** -(torch.arange(P, dtype=torch.float64) / P)  # (P,): fast to slow
    # In float64: far along a sequence, the angles of fewer digits are badly off.
    angles = positions.double()[:, None] * frequencies  # (L, P)
    cos, sin = angles.cos(), angles.sin()

    def turn(x: Tensor) -> Tensor:
        a, b = x.double().chunk(2, dim=-1)  # (B, H, L, D) → (B, H, L, P) twice
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)

    return turn(q), turn(k)
