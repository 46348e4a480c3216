# mistake: the variance is repaired, but eps is now added after the root
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        std = (x - mean).pow(2).mean(dim=-1, keepdim=True).sqrt()
        return (x - mean) / (std + self.eps) * self.weight + self.bias
