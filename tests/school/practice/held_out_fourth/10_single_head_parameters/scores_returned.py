# mistake: two at once: returns the scores in the place of the weights, and does not scale them
import torch
from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_weight = nn.Parameter(torch.randn(dim, head_dim) * 0.02)
        self.k_weight = nn.Parameter(torch.randn(dim, head_dim) * 0.02)
        self.v_weight = nn.Parameter(torch.randn(dim, head_dim) * 0.02)

    def forward(self, x):
        q = x @ self.q_weight
        k = x @ self.k_weight
        v = x @ self.v_weight
        weights = torch.bmm(q, k.transpose(1, 2))
        out = torch.bmm(torch.softmax(weights, dim=2), v)
        return out, weights
