# mistake: two at once: the gate is a sigmoid without the factor z, and the layers have biases
import torch
from torch import nn


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.gate = nn.Linear(dim, hidden_dim)
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        return self.down(torch.sigmoid(self.gate(x)) * self.up(x))
