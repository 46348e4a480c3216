# mistake: two at once: divides by the root of dim instead of head_dim, and returns (weights, out) in the wrong order
import math

import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.dim = dim
        self.q_weight = nn.Parameter(torch.randn(dim, head_dim))
        self.k_weight = nn.Parameter(torch.randn(dim, head_dim))
        self.v_weight = nn.Parameter(torch.randn(dim, head_dim))

    def forward(self, x):
        q, k, v = x @ self.q_weight, x @ self.k_weight, x @ self.v_weight
        weights = (q @ k.transpose(-2, -1) / math.sqrt(self.dim)).softmax(dim=-1)
        return weights, weights @ v
