# mistake: erf(z) instead of erf(z / root of 2)
import torch
from torch import nn


class GELUFeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        z = self.up(x)
        return self.down(z * (1 + torch.erf(z)) / 2)
