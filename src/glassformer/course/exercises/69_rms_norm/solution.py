"""Every token at root mean square 1."""

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """y = x / √(mean(x²) + eps) · weight"""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))  # gain 1 at the start, and no shift

    def forward(self, x: Tensor) -> Tensor:
        mean_square = x.square().mean(dim=-1, keepdim=True)  # (..., C) → (..., 1)
        return x / torch.sqrt(mean_square + self.eps) * self.weight
