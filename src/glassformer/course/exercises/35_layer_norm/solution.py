"""Every token at mean 0 and variance 1."""

import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """y = (x − mean) / √(variance + eps) · weight + bias"""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))  # gain 1 and shift 0 at the start
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)  # divides by dim, not dim − 1
        return centred / torch.sqrt(variance + self.eps) * self.weight + self.bias
