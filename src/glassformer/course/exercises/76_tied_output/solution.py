"""One table at both ends: it embeds tokens, and it scores them."""

import math

import torch
from torch import Tensor, nn


class TiedModel(nn.Module):
    """logits = middle(weight[tokens] · √dim) @ weightᵀ"""

    def __init__(self, vocab_size: int, dim: int, middle: nn.Module) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, dim) / math.sqrt(dim))
        self.middle = middle

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.weight[tokens] * math.sqrt(self.weight.shape[1])  # (B, L) → (B, L, C)
        return self.middle(x) @ self.weight.T  # (B, L, C) → (B, L, V)
