# correct: centred by multiplying with I − 1/n, the variance by an einsum
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        n = x.shape[-1]
        centring = torch.eye(n, dtype=x.dtype, device=x.device) - 1 / n
        y = x @ centring
        power = torch.einsum("...c,...c->...", y, y)[..., None] / n
        return torch.addcmul(self.bias, y / (power + self.eps).sqrt(), self.weight)
