# mistake: two at once: no division by the root of head_dim, and softmax runs over the queries.
import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_weight = nn.Parameter(torch.rand(dim, head_dim))
        self.k_weight = nn.Parameter(torch.rand(dim, head_dim))
        self.v_weight = nn.Parameter(torch.rand(dim, head_dim))

    def forward(self, x):
        q = torch.matmul(x, self.q_weight)
        k = torch.matmul(x, self.k_weight)
        weights = torch.softmax(torch.matmul(q, k.transpose(1, 2)), dim=1)
        return torch.matmul(torch.matmul(weights, x), self.v_weight), weights
