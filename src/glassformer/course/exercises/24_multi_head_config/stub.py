import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    """out = out_dropout(out_proj([head_1 … head_H]))

    head_h = weights_dropout(softmax(q_h k_hᵀ / √D)) v_h
    """

    def __init__(self, dim, n_heads, *, max_len, dropout=0.0, causal=False):
        super().__init__()
        ...

    def forward(self, q, k, v):
        """(B, L, C), (B, S, C), (B, S, C) → (B, L, C)"""
        ...
