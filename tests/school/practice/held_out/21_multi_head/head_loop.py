# correct: a loop over the heads, each with its own columns of the matrices
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

    def forward(self, x):
        width = x.shape[-1] // self.n_heads
        out, maps = 0, []
        for h in range(self.n_heads):
            columns = slice(h * width, (h + 1) * width)
            q = x @ self.q_weight[:, columns]
            k = x @ self.k_weight[:, columns]
            v = x @ self.v_weight[:, columns]
            weights = (q @ k.mT / math.sqrt(width)).softmax(-1)
            out = out + weights @ v @ self.out_weight[columns]
            maps.append(weights)
        return out, torch.stack(maps, dim=1)
