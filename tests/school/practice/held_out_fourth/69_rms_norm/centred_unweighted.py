# mistake: two at once: subtracts the mean, and forgets the weight in forward
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        x = x - x.mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps)
