# mistake: applies ReLU after the second layer instead of between the two.
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        return torch.relu(self.down(self.up(x)))
