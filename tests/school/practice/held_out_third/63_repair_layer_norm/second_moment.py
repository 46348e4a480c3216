# mistake: the mean of the squares of x, without subtracting the mean
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
        variance = (x**2).mean(dim=-1, keepdim=True)
        return (x - mean) / (variance + self.eps).sqrt() * self.weight + self.bias
