import torch
from torch import nn


class LayerNorm(nn.Module):
    """(x − mean) / √(variance + eps) · weight + bias, over the last dimension"""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True)
        return (x - mean) / (variance + self.eps).sqrt() * self.weight + self.bias
