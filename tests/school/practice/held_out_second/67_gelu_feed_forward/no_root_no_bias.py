# mistake: two at once: the linear layers have no biases; and erf gets z / 2 instead of z / √2
import torch
from torch import nn


class GELUFeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim, bias=False)
        self.down = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        z = self.up(x)
        return self.down(z * (1 + torch.erf(z / 2)) / 2)
