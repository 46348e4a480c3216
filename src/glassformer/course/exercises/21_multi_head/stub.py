import math

import torch
from torch import nn


class MultiHead(nn.Module):
    """head_h = softmax(q_h k_hᵀ / √D) v_h        out = [head_1 … head_H] W_o"""

    def __init__(self, dim, n_heads):
        super().__init__()
        ...

    def forward(self, x):
        """(B, L, C) → out (B, L, C), weights (B, H, L, L)"""
        ...
