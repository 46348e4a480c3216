# correct: takes Φ from torch.distributions.Normal
import torch
from torch import nn
from torch.distributions import Normal


class GELUFeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        hidden = self.up(x)
        gaussian = Normal(torch.zeros_like(hidden), torch.ones_like(hidden))
        return self.down(hidden * gaussian.cdf(hidden))
