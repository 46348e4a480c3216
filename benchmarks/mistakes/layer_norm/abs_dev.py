# mistake: mean absolute deviation in place of the standard deviation
import torch
from torch import nn
class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
    def forward(self, x):
        c = x - x.mean(-1, keepdim=True)
        return self.weight * c / (c.abs().mean(-1, keepdim=True) + self.eps) + self.bias
