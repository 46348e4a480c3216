# correct: sums divided by the width, without mean or var
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.dim, self.eps = dim, eps
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        centered = x - (x.sum(-1) / self.dim)[..., None]
        variance = torch.einsum("...c,...c->...", centered, centered) / self.dim
        return centered / (variance + self.eps).pow(0.5)[..., None] * self.weight + self.bias
