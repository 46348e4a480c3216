# mistake: scales the table once and uses the scaled table also for the output
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
        table = self.weight * math.sqrt(self.dim)
        return self.middle(table[tokens]) @ table.T
