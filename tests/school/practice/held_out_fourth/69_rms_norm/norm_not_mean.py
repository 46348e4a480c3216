# mistake: divides by the Euclidean length instead of the root of the mean of the squares
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        length = (torch.linalg.vector_norm(x, dim=-1, keepdim=True) ** 2 + self.eps).sqrt()
        return self.weight * (x / length)
