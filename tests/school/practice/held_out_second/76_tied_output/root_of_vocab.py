# mistake: scales by the root of the vocabulary size, shape[0], instead of the width
import math

import torch
from torch import nn


class TiedModel(nn.Module):
    def __init__(self, vocab_size, dim, middle):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, dim))
        self.middle = middle

    def forward(self, tokens):
        x = self.weight[tokens] * math.sqrt(self.weight.shape[0])
        return torch.matmul(self.middle(x), self.weight.t())
