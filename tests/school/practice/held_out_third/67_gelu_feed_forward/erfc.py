# correct: Φ from the complementary error function
import torch
from torch import nn


class GELUFeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        z = self.up(x)
        phi = torch.erfc(-z * 0.5**0.5) * 0.5
        return self.down(phi * z)
