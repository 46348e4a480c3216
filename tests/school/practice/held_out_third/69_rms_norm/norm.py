# correct: from the Euclidean length of each vector
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.full((dim,), 1.0))

    def forward(self, x):
        n = x.shape[-1]
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return self.weight * x * (length**2 / n + self.eps) ** -0.5
