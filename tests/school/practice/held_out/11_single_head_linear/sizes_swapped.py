# mistake: swaps input and output width of the linear layers.
import math

from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_proj = nn.Linear(head_dim, dim, bias=False)
        self.k_proj = nn.Linear(head_dim, dim, bias=False)
        self.v_proj = nn.Linear(head_dim, dim, bias=False)

    def forward(self, x):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
        return weights @ v, weights
