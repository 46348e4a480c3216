# correct: writes Φ with the complementary error function, and the layers are made by a loop
from torch import nn
import torch


class GELUFeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        for name, n_in, n_out in (("up", dim, hidden_dim), ("down", hidden_dim, dim)):
            setattr(self, name, nn.Linear(n_in, n_out))

    def forward(self, x):
        z = self.up(x)
        cdf = 0.5 * torch.erfc(-z * 2**-0.5)
        return self.down(torch.mul(z, cdf))
