"""A row of a table for each token."""

import math

import torch
from torch import Tensor, nn


class Embedding(nn.Module):
    """out[b, l] = weight[tokens[b, l]] · √dim"""

    def __init__(self, vocab_size: int, dim: int) -> None:
        super().__init__()
        # Rows start with norm about 1, so that the entries of out start with magnitude about 1.
        self.weight = nn.Parameter(torch.randn(vocab_size, dim) / math.sqrt(dim))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.weight[tokens] * math.sqrt(self.weight.shape[1])  # (B, L) → (B, L, C)
