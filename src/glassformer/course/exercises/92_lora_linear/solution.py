"""Low-rank adaptation: the matrix stays, a narrow product is learned beside it."""

import torch
from torch import Tensor, nn


class LoRALinear(nn.Module):
    """y = base(x) + alpha / rank · B A x, where only A and B are trained"""

    def __init__(self, base: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        n_out, n_in = base.weight.shape
        self.base = base
        for parameter in base.parameters():
            parameter.requires_grad = False
        self.scale = alpha / rank
        self.lora_a = nn.Parameter(torch.randn(rank, n_in) / n_in**0.5)
        self.lora_b = nn.Parameter(torch.zeros(n_out, rank))  # nothing is added at first

    def forward(self, x: Tensor) -> Tensor:
        """(..., n_in) → (..., n_out)"""
        narrow = x @ self.lora_a.T  # (..., rank)
        return self.base(x) + self.scale * (narrow @ self.lora_b.T)

    def merged(self) -> nn.Linear:
        """A new nn.Linear that computes the same"""
        n_out, n_in = self.base.weight.shape
        layer = nn.Linear(n_in, n_out)
        with torch.no_grad():
            layer.weight.copy_(self.base.weight + self.scale * (self.lora_b @ self.lora_a))
            layer.bias.copy_(self.base.bias)
        return layer
