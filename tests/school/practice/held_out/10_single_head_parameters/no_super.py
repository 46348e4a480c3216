# mistake: never calls super().__init__(), so no parameter can be assigned.
import math

import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        self.q_weight = nn.Parameter(torch.randn(dim, head_dim))
        self.k_weight = nn.Parameter(torch.randn(dim, head_dim))
        self.v_weight = nn.Parameter(torch.randn(dim, head_dim))

    def forward(self, x):
        q, k, v = x @ self.q_weight, x @ self.k_weight, x @ self.v_weight
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
        return weights @ v, weights
