# mistake: scores divided by the root of the whole width
import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_weight = nn.Parameter(torch.randn(dim, dim) / math.sqrt(dim))
        self.k_weight = nn.Parameter(torch.randn(dim, dim) / math.sqrt(dim))
        self.v_weight = nn.Parameter(torch.randn(dim, dim) / math.sqrt(dim))
        self.out_weight = nn.Parameter(torch.randn(dim, dim) / math.sqrt(dim))

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, x):
        q, k, v = (self.split(x @ w) for w in (self.q_weight, self.k_weight, self.v_weight))
        weights = (q @ k.transpose(-2, -1) / math.sqrt(x.shape[-1])).softmax(-1)
        out = (weights @ v).transpose(1, 2).flatten(2)
        return out @ self.out_weight, weights
