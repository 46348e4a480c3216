# mistake: the table is (dim, vocab_size), one column for each token.
import math

import torch
from torch import nn


class Embedding(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim, vocab_size))
        self.scale = math.sqrt(dim)

    def forward(self, tokens):
        return self.weight[:, tokens].permute(1, 2, 0) * self.scale
