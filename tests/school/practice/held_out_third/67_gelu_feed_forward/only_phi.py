# mistake: the gate alone: Φ(z) without the factor z
import math

import torch
from torch import nn


class GELUFeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        z = self.up(x)
        return self.down((1 + torch.erf(z / math.sqrt(2))) / 2)
