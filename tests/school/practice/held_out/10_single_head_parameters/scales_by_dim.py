# mistake: divides by the root of dim instead of that of head_dim.
import math

import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.dim = dim
        self.q_weight = nn.Parameter(torch.randn(dim, head_dim) * 0.02)
        self.k_weight = nn.Parameter(torch.randn(dim, head_dim) * 0.02)
        self.v_weight = nn.Parameter(torch.randn(dim, head_dim) * 0.02)

    def forward(self, x):
        q, k, v = x @ self.q_weight, x @ self.k_weight, x @ self.v_weight
        weights = (q @ k.transpose(-2, -1) / math.sqrt(self.dim)).softmax(dim=-1)
        return weights @ v, weights
