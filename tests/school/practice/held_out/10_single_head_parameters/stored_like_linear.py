# mistake: the parameters are (head_dim, dim), as nn.Linear stores them, and used transposed.
import math

import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.head_dim = head_dim
        for name in ("q_weight", "k_weight", "v_weight"):
            weight = nn.Parameter(torch.empty(head_dim, dim))
            nn.init.xavier_uniform_(weight)
            setattr(self, name, weight)

    def forward(self, x):
        q, k, v = x @ self.q_weight.T, x @ self.k_weight.T, x @ self.v_weight.T
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        weights = scores.softmax(-1)
        return weights @ v, weights
