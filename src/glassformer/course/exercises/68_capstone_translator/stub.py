import torch
from torch import nn


class Attention(nn.Module):
    """x asks, context answers; positions rotate queries and keys"""

    def __init__(self, parts, sizes):
        super().__init__()
        self.parts, self.n_heads = parts, sizes.n_heads
        self.q_proj = nn.Linear(sizes.dim, sizes.dim)
        self.k_proj = nn.Linear(sizes.dim, sizes.dim)
        self.v_proj = nn.Linear(sizes.dim, sizes.dim)
        self.out_proj = nn.Linear(sizes.dim, sizes.dim)

    def forward(self, x, context, mask, positions=None):
        """(B, L, C), (B, S, C) → (B, L, C)"""
        ...


class EncoderLayer(nn.Module):
    """x → x + attention(norm(x)) → x + feed_forward(norm(x))"""

    def __init__(self, parts, sizes):
        super().__init__()
        self.parts = parts
        self.attention = Attention(parts, sizes)
        self.feed_forward = parts.GELUFeedForward(sizes.dim, sizes.hidden_dim)
        self.attention_norm = parts.LayerNorm(sizes.dim)
        self.feed_forward_norm = parts.LayerNorm(sizes.dim)

    def forward(self, x, mask):
        """(B, L, C) → (B, L, C)"""
        ...


class DecoderLayer(nn.Module):
    """x → x + attention(norm(x)) → x + cross(norm(x), context) → x + feed_forward(norm(x))"""

    def __init__(self, parts, sizes):
        super().__init__()
        ...  # as in EncoderLayer, and: cross, cross_norm

    def forward(self, x, context, mask, context_mask):
        """(B, L, C), (B, S, C) → (B, L, C)"""
        ...
