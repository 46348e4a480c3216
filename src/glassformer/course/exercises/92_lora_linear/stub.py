import torch
from torch import nn


class LoRALinear(nn.Module):
    """y = base(x) + alpha / rank · B A x, where only A and B are trained"""

    def __init__(self, base, rank, alpha):
        super().__init__()
        ...

    def forward(self, x):
        """(..., n_in) → (..., n_out)"""
        ...

    def merged(self):
        """A new nn.Linear that computes the same"""
        ...
