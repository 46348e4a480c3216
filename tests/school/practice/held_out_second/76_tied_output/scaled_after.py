# mistake: multiplies by √dim after the middle instead of before it
import math

import torch
from torch import nn


class TiedModel(nn.Module):
    def __init__(self, vocab_size, dim, middle):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, dim) * 0.02)
        self.middle = middle
        self.dim = dim

    def forward(self, tokens):
        x = self.middle(self.weight[tokens]) * math.sqrt(self.dim)
        return x @ self.weight.T
