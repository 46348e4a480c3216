# mistake: the approximation by tanh instead of erf
import math

import torch
from torch import nn


class GELUFeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    @staticmethod
    def gate(z):
        return 0.5 * z * (1 + torch.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z.pow(3))))

    def forward(self, x):
        return self.down(self.gate(self.up(x)))
