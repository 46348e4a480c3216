# mistake: merges the heads without transposing back, which mixes tokens and heads.
import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads, self.d = n_heads, dim // n_heads
        self.q_weight = nn.Parameter(torch.randn(dim, dim) * 0.1)
        self.k_weight = nn.Parameter(torch.randn(dim, dim) * 0.1)
        self.v_weight = nn.Parameter(torch.randn(dim, dim) * 0.1)
        self.out_weight = nn.Parameter(torch.randn(dim, dim) * 0.1)

    def forward(self, x):
        B, L, C = x.shape

        def heads(t):
            return t.reshape(B, L, self.n_heads, self.d).permute(0, 2, 1, 3)

        q, k, v = (heads(x @ w) for w in (self.q_weight, self.k_weight, self.v_weight))
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(self.d), dim=3)
        out = (weights @ v).reshape(B, L, C)
        return out @ self.out_weight, weights
