import math

import torch
from torch import nn


class SingleHead(nn.Module):
    """q, k, v = x W_q, x W_k, x W_v        out = softmax(q kᵀ / √D) v"""

    def __init__(self, dim, head_dim):
        super().__init__()
        ...

    def forward(self, x): ...
