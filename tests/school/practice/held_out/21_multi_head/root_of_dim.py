# mistake: divides by √C, the whole width, instead of √D.
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
        H = self.n_heads
        q = (x @ self.q_weight).view(B, L, H, C // H).transpose(1, 2)
        k = (x @ self.k_weight).view(B, L, H, C // H).transpose(1, 2)
        v = (x @ self.v_weight).view(B, L, H, C // H).transpose(1, 2)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(C)).softmax(-1)
        out = (weights @ v).transpose(1, 2).reshape(B, L, C)
        return out @ self.out_weight, weights
