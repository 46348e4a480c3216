"""Every position as a row of waves, from fast to slow."""

import torch
from torch import Tensor


def sinusoidal(positions: Tensor, dim: int) -> Tensor:
    """table[p, 2i] = sin(p / 10000^(2i / dim))        table[p, 2i + 1] = cos(the same angle)"""
    evens = torch.arange(0, dim, 2).to(positions)  # 2i
    angles = positions[:, None] / 10000 ** (evens / dim)  # (L, 1) / (dim/2) → (L, dim/2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # interleaved: (L, dim)
