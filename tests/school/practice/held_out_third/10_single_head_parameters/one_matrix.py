# mistake: keys are computed with q_weight, k_weight is never used
import math

import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_weight = nn.Parameter(torch.randn(dim, head_dim) * dim**-0.5)
        self.k_weight = nn.Parameter(torch.randn(dim, head_dim) * dim**-0.5)
        self.v_weight = nn.Parameter(torch.randn(dim, head_dim) * dim**-0.5)

    def forward(self, x):
        q = x @ self.q_weight
        k = x @ self.q_weight
        v = x @ self.v_weight
        w = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).softmax(-1)
        return w @ v, w
