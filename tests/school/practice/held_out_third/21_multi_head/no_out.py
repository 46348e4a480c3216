# mistake: out_weight is never used
import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.h = n_heads
        self.d = dim // n_heads
        for n in ["q_weight", "k_weight", "v_weight", "out_weight"]:
            self.register_parameter(n, nn.Parameter(torch.randn(dim, dim) * 0.1))

    def forward(self, x):
        B, L, C = x.shape
        q = (x @ self.q_weight).view(B, L, self.h, self.d).transpose(1, 2)
        k = (x @ self.k_weight).view(B, L, self.h, self.d).transpose(1, 2)
        v = (x @ self.v_weight).view(B, L, self.h, self.d).transpose(1, 2)
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(self.d), dim=3)
        out = (weights @ v).transpose(1, 2).reshape(B, L, C)
        return out, weights
