# correct: writes silu as z / (1 + exp(−z)) and the layers as attributes from a dictionary
import torch
from torch import nn


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        layers = {
            "gate": nn.Linear(dim, hidden_dim, bias=False),
            "up": nn.Linear(dim, hidden_dim, bias=False),
            "down": nn.Linear(hidden_dim, dim, bias=False),
        }
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, x):
        g = self.gate(x)
        switched = g / (1 + torch.exp(-g))
        return self.down(self.up(x) * switched)
