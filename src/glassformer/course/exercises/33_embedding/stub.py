import math

import torch
from torch import nn


class Embedding(nn.Module):
    """out[b, l] = weight[tokens[b, l]] · √dim"""

    def __init__(self, vocab_size, dim):
        super().__init__()
        ...

    def forward(self, tokens):
        """(B, L) → (B, L, dim)"""
        ...
