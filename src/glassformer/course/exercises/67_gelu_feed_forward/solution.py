"""The feed-forward network with GELU in the place of ReLU."""

import math

import torch
from torch import Tensor, nn


class GELUFeedForward(nn.Module):
    """down(gelu(up(x))),  gelu(z) = z · Φ(z),  Φ(z) = (1 + erf(z / √2)) / 2"""

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        z = self.up(x)  # (B, L, C) → (B, L, F)
        share = (1 + torch.erf(z / math.sqrt(2))) / 2  # Φ: how much of z is let through
        return self.down(z * share)  # (B, L, F) → (B, L, C)
