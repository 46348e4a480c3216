# correct: multiplies with the layers' weights and biases directly
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up, self.down = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)

    def forward(self, x):
        hidden = torch.einsum("...c,fc->...f", x, self.up.weight) + self.up.bias
        hidden = hidden * (hidden > 0)
        return torch.einsum("...f,cf->...c", hidden, self.down.weight) + self.down.bias
