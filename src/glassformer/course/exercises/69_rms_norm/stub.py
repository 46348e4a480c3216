import torch
from torch import nn


class RMSNorm(nn.Module):
    """y = x / √(mean(x²) + eps) · weight"""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        ...

    def forward(self, x):
        """(..., dim) → (..., dim)"""
        ...
