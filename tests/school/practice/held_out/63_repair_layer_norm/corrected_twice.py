# mistake: multiplies the variance by C / (C − 1), the wrong way round.
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
        variance = x.var(dim=-1, keepdim=True) * C / (C - 1)
        return (x - mean) / (variance + self.eps).sqrt() * self.weight + self.bias
