# mistake: switches the bias off for gate and up but forgets it for down
import torch.nn.functional as F
from torch import nn


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.gate = nn.Linear(dim, hidden_dim, bias=False)
        self.up = nn.Linear(dim, hidden_dim, bias=False)
        self.down = nn.Linear(hidden_dim, dim)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))
