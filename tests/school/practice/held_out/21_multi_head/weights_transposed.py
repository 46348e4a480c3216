# mistake: uses x @ weight.T, the convention of nn.Linear, for all four matrices.
import math

import torch
import torch.nn.functional as F
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_weight = nn.Parameter(torch.empty(dim, dim).uniform_(-0.1, 0.1))
        self.k_weight = nn.Parameter(torch.empty(dim, dim).uniform_(-0.1, 0.1))
        self.v_weight = nn.Parameter(torch.empty(dim, dim).uniform_(-0.1, 0.1))
        self.out_weight = nn.Parameter(torch.empty(dim, dim).uniform_(-0.1, 0.1))

    def forward(self, x):
        q, k, v = (
            (x @ w.T).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for w in (self.q_weight, self.k_weight, self.v_weight)
        )
        weights = F.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
        merged = (weights @ v).transpose(1, 2).flatten(-2)
        return merged @ self.out_weight.T, weights
