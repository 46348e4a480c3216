import torch
from torch import nn


class Attention(nn.Module):
    """one new token looks at all tokens so far, itself included"""

    def __init__(self, parts, sizes):
        super().__init__()
        self.parts, self.sizes = parts, sizes
        kv_dim = sizes.dim // sizes.n_heads * sizes.n_kv_heads
        self.q_proj = nn.Linear(sizes.dim, sizes.dim, bias=False)
        self.k_proj = nn.Linear(sizes.dim, kv_dim, bias=False)
        self.v_proj = nn.Linear(sizes.dim, kv_dim, bias=False)
        self.out_proj = nn.Linear(sizes.dim, sizes.dim, bias=False)

    def forward(self, x, position, cache=None):
        """(B, 1, C) → out (B, 1, C), cache (k, v)"""
        ...


class Block(nn.Module):
    """x → x + attention(norm(x)) → x + feed_forward(norm(x))"""

    def __init__(self, parts, sizes):
        super().__init__()
        self.attention = Attention(parts, sizes)
        self.feed_forward = parts.SwiGLU(sizes.dim, sizes.hidden_dim)
        self.attention_norm = parts.RMSNorm(sizes.dim, sizes.eps)
        self.feed_forward_norm = parts.RMSNorm(sizes.dim, sizes.eps)

    def forward(self, x, position, cache=None):
        """(B, 1, C) → x (B, 1, C), cache (k, v)"""
        ...


class Writer(nn.Module):
    """token → embedding → blocks → norm → head → logits"""

    def __init__(self, embedding, blocks, norm, head):
        super().__init__()
        ...

    def forward(self, token, position, caches):
        """token (B, 1), a cache for each block → logits (B, V), the new caches"""
        ...
