import torch
from torch import nn


class SwiGLU(nn.Module):
    """down(silu(gate(x)) · up(x)),  silu(z) = z · sigmoid(z)"""

    def __init__(self, dim, hidden_dim):
        super().__init__()
        ...

    def forward(self, x):
        """(B, L, C) → (B, L, C)"""
        ...
