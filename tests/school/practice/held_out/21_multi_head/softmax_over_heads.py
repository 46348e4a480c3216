# mistake: softmax runs over dimension 1, the heads.
import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.h = n_heads
        self.q_weight = nn.Parameter(torch.randn(dim, dim))
        self.k_weight = nn.Parameter(torch.randn(dim, dim))
        self.v_weight = nn.Parameter(torch.randn(dim, dim))
        self.out_weight = nn.Parameter(torch.randn(dim, dim))

    def forward(self, x):
        B, L, C = x.shape
        d = C // self.h
        q = (x @ self.q_weight).view(B, L, self.h, d).transpose(1, 2)
        k = (x @ self.k_weight).view(B, L, self.h, d).transpose(1, 2)
        v = (x @ self.v_weight).view(B, L, self.h, d).transpose(1, 2)
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(d), dim=1)
        out = (weights @ v).transpose(1, 2).contiguous().view(B, L, C)
        return out @ self.out_weight, weights
