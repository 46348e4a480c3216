# mistake: takes the mean of the squares over all dimensions of x instead of over the last one
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        rms = torch.sqrt(torch.mean(x**2) + self.eps)
        return self.weight * (x / rms)
