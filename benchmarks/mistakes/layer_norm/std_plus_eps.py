# mistake: std with n − 1, and eps added to it outside the root
import torch
from torch import nn
class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        s = x.std(-1, keepdim=True)
        return self.weight * (x - m) / (s + self.eps) + self.bias
