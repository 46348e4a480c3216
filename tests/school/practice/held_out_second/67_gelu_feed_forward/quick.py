# mistake: uses the quick approximation z · sigmoid(1.702 z), as CLIP does, instead of the formula with erf
import torch
from torch import nn


class GELUFeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        z = self.up(x)
        return self.down(z * torch.sigmoid(1.702 * z))
