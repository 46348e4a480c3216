# mistake: two at once: scales by the whole width, and multiplies by the transposed output matrix
import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        for name in ("q_weight", "k_weight", "v_weight", "out_weight"):
            setattr(self, name, nn.Parameter(torch.empty(dim, dim).normal_(std=0.02)))

    def heads(self, x):
        B, L, C = x.shape
        return x.reshape(B, L, self.n_heads, C // self.n_heads).permute(0, 2, 1, 3)

    def forward(self, x):
        B, L, C = x.shape
        q, k, v = (self.heads(x @ w) for w in (self.q_weight, self.k_weight, self.v_weight))
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(C), dim=-1)
        out = (weights @ v).permute(0, 2, 1, 3).reshape(B, L, C)
        return out @ self.out_weight.T, weights
