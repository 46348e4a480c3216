import math

from torch import nn


class SingleHead(nn.Module):
    """q, k, v = q_proj(x), k_proj(x), v_proj(x)        out = softmax(q kᵀ / √D) v"""

    def __init__(self, dim, head_dim):
        super().__init__()
        ...

    def forward(self, x): ...
