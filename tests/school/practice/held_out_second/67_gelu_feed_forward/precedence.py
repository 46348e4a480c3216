# mistake: misses the brackets, so that z · 1 is added to erf / 2 instead of z times the whole of Φ
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
        z = z * 1 + torch.erf(z / math.sqrt(2)) / 2
        return self.down(z)
