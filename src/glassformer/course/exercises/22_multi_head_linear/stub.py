import math

from torch import nn


class MultiHead(nn.Module):
    """out = out_proj([head_1 … head_H])        head_h = dropout(softmax(q_h k_hᵀ / √D)) v_h"""

    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        ...

    def forward(self, x, mask=None):
        """(B, L, C) → (B, L, C)"""
        ...
