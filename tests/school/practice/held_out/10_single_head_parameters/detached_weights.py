# mistake: detaches the weights, so queries and keys get no gradient.
import math

import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_weight = nn.Parameter(torch.randn(dim, head_dim) / math.sqrt(dim))
        self.k_weight = nn.Parameter(torch.randn(dim, head_dim) / math.sqrt(dim))
        self.v_weight = nn.Parameter(torch.randn(dim, head_dim) / math.sqrt(dim))

    def forward(self, x):
        q, k, v = x @ self.q_weight, x @ self.k_weight, x @ self.v_weight
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1).detach()
        return weights @ v, weights
