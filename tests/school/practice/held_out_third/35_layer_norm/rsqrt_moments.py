# correct: the variance as the mean of squares of the centred x, rsqrt, addcmul
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.eps, self.dim = eps, dim

    def forward(self, x):
        centred = x - x.sum(-1, keepdim=True) / self.dim
        inverse = torch.rsqrt(torch.linalg.vecdot(centred, centred).unsqueeze(-1) / self.dim + self.eps)
        return torch.addcmul(self.bias, centred * inverse, self.weight)
