# mistake: gives each linear layer only its output width, as Keras's Dense takes it.
import torch.nn.functional as F
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.up = nn.Linear(hidden_dim)
        self.down = nn.Linear(dim)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))
