# mistake: returns the weights averaged over the heads, as nn.MultiheadAttention does.
import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        for name in "q", "k", "v", "out":
            w = nn.Parameter(torch.empty(dim, dim))
            nn.init.xavier_uniform_(w)
            self.register_parameter(f"{name}_weight", w)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, x):
        q = self.split(x @ self.q_weight)
        k = self.split(x @ self.k_weight)
        v = self.split(x @ self.v_weight)
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
        out = (weights @ v).transpose(1, 2).flatten(2) @ self.out_weight
        return out, weights.mean(dim=1)
