# mistake: two at once: the variance is divided by dim − 1, and eps is added to the standard deviation
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        deviation = torch.sqrt((centred**2).sum(-1, keepdim=True) / (x.shape[-1] - 1))
        return self.weight * centred / (deviation + self.eps) + self.bias
