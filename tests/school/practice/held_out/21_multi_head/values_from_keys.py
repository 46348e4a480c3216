# mistake: splits one projection twice: the values are taken from the keys' projection.
import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_weight = nn.Parameter(torch.randn(dim, dim))
        self.k_weight = nn.Parameter(torch.randn(dim, dim))
        self.v_weight = nn.Parameter(torch.randn(dim, dim))
        self.out_weight = nn.Parameter(torch.randn(dim, dim))

    def forward(self, x):
        B, L, C = x.shape
        q = (x @ self.q_weight).view(B, L, self.n_heads, -1).transpose(1, 2)
        k = (x @ self.k_weight).view(B, L, self.n_heads, -1).transpose(1, 2)
        v = (x @ self.k_weight).view(B, L, self.n_heads, -1).transpose(1, 2)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(C // self.n_heads)).softmax(-1)
        out = (weights @ v).transpose(1, 2).reshape(B, L, C) @ self.out_weight
        return out, weights
