# mistake: multiplies the weight itself by the root of dim in every call
import math

import torch
from torch import nn


class Embedding(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.dim = dim
        self.weight = nn.Parameter(torch.randn(vocab_size, dim))

    def forward(self, tokens):
        self.weight.data.mul_(math.sqrt(self.dim))
        return self.weight[tokens]
