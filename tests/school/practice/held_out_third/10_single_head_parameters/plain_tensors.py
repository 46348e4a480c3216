# mistake: the matrices are plain tensors and not parameters
import math

import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_weight = torch.randn(dim, head_dim, requires_grad=True)
        self.k_weight = torch.randn(dim, head_dim, requires_grad=True)
        self.v_weight = torch.randn(dim, head_dim, requires_grad=True)

    def forward(self, x):
        q, k, v = x @ self.q_weight, x @ self.k_weight, x @ self.v_weight
        weights = torch.softmax(q @ k.mT / math.sqrt(k.shape[-1]), dim=-1)
        return weights @ v, weights
