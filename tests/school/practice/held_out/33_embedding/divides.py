# mistake: divides by √dim, as attention does, instead of multiplying.
import math

import torch
from torch import nn


class Embedding(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.dim = dim
        self.weight = nn.Parameter(torch.randn(vocab_size, dim))

    def forward(self, tokens):
        return self.weight[tokens] / math.sqrt(self.dim)
