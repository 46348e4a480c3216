# mistake: k_proj is the same layer as q_proj
import math

from torch import nn


class SingleHead(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.q_proj = nn.Linear(dim, head_dim, bias=False)
        self.k_proj = self.q_proj
        self.v_proj = nn.Linear(dim, head_dim, bias=False)

    def forward(self, x):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        w = (q @ k.mT / math.sqrt(k.shape[-1])).softmax(-1)
        return w @ v, w
