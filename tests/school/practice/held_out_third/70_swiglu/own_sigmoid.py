# correct: the sigmoid by hand, z / (1 + exp(-z)), and einsum for the last layer
import torch
from torch import nn


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.gate = nn.Linear(dim, hidden_dim, bias=False)
        self.up = nn.Linear(dim, hidden_dim, bias=False)
        self.down = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        z = self.gate(x)
        act = z / (1 + torch.exp(-z))
        return torch.einsum("blf,cf->blc", act * self.up(x), self.down.weight)
