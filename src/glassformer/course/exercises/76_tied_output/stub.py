import math

import torch
from torch import nn


class TiedModel(nn.Module):
    """logits = middle(weight[tokens] · √dim) @ weightᵀ"""

    def __init__(self, vocab_size, dim, middle):
        super().__init__()
        ...

    def forward(self, tokens):
        """(B, L) → (B, L, V)"""
        ...
