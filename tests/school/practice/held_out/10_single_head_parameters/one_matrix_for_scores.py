# correct: forms W_q W_kᵀ first and projects after the weighted mean, which is the same by associativity
import math

import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_weight = nn.Parameter(torch.empty(dim, head_dim).normal_(std=0.02))
        self.k_weight = nn.Parameter(torch.empty(dim, head_dim).normal_(std=0.02))
        self.v_weight = nn.Parameter(torch.empty(dim, head_dim).normal_(std=0.02))

    def forward(self, x):
        between = self.q_weight @ self.k_weight.T  # (dim, dim)
        scores = x @ between @ x.transpose(1, 2) / math.sqrt(self.q_weight.shape[1])
        weights = torch.softmax(scores, dim=2)
        return weights @ x @ self.v_weight, weights
