# mistake: the factor root of dim is applied at the output too
import math

import torch
from torch import nn


class TiedModel(nn.Module):
    def __init__(self, vocab_size, dim, middle):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, dim) * 0.02)
        self.middle = middle
        self.scale = math.sqrt(dim)

    def forward(self, tokens):
        x = self.weight[tokens] * self.scale
        return self.middle(x) @ (self.weight * self.scale).T
