# correct: the unbiased variance is multiplied by (C - 1) / C
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        C = x.shape[-1]
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True) * (C - 1) / C
        return (x - mean) / (variance + self.eps).sqrt() * self.weight + self.bias
