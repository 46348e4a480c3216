import torch
from torch import nn


class LayerNorm(nn.Module):
    """y = (x − mean) / √(variance + eps) · weight + bias"""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        ...

    def forward(self, x):
        """(..., dim) → (..., dim)"""
        ...
