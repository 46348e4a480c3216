# mistake: the output has a copy of the table, a second parameter that is not tied
import math

import torch
from torch import nn


class TiedModel(nn.Module):
    def __init__(self, vocab_size, dim, middle):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, dim))
        self.middle = middle
        self.head = nn.Linear(dim, vocab_size, bias=False)
        self.head.weight.data = self.weight.data.clone()
        self.dim = dim

    def forward(self, tokens):
        return self.head(self.middle(self.weight[tokens] * math.sqrt(self.dim)))
