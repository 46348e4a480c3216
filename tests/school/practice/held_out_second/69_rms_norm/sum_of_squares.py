# mistake: divides by the length of the vector (root of the sum of squares) instead of the root of their mean
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x / (x.square().sum(-1, keepdim=True) + self.eps).sqrt() * self.weight
