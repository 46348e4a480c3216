import math

from torch import nn


class CrossAttention(nn.Module):
    """head_h = softmax(q_h k_hᵀ / √D) v_h, with q from x, and k and v from context"""

    def __init__(self, dim, context_dim, n_heads, head_dim, value_dim):
        super().__init__()
        ...

    def forward(self, x, context):
        """(B, L, dim), (B, S, context_dim) → out (B, L, dim), weights (B, H, L, S)"""
        ...
