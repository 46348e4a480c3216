"""Layer normalization with the population variance."""

import torch
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """(x − mean) / √(variance + eps) · weight + bias, over the last dimension"""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True, correction=0)  # divides by C, not by C − 1
        return (x - mean) / (variance + self.eps).sqrt() * self.weight + self.bias
