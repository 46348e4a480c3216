# mistake: two at once: subtracts the mean first, as layer norm does; and adds eps after the square root
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        x = x - x.mean(dim=-1, keepdim=True)
        rms = (x * x).mean(dim=-1, keepdim=True).sqrt()
        return x / (rms + self.eps) * self.weight
