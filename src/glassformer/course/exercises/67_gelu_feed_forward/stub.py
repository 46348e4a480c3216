import math

import torch
from torch import nn


class GELUFeedForward(nn.Module):
    """down(gelu(up(x))),  gelu(z) = z · Φ(z),  Φ(z) = (1 + erf(z / √2)) / 2"""

    def __init__(self, dim, hidden_dim):
        super().__init__()
        ...

    def forward(self, x):
        """(B, L, C) → (B, L, C)"""
        ...
