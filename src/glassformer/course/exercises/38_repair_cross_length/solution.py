"""Queries and keys, each with their own length."""

import math

from torch import Tensor, nn


class CrossAttention(nn.Module):
    """Queries from x, keys and values from context."""

    def __init__(self, dim: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads, self.head_dim = n_heads, dim // n_heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        B, L, C = x.shape
        S = context.shape[1]  # the keys have their own length
        q = self.q_proj(x).view(B, L, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(context).view(B, S, self.n_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(context).view(B, S, self.n_heads, self.head_dim).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, H, L, S)
        out = scores.softmax(dim=-1) @ v  # (B, H, L, S) × (B, H, S, D) → (B, H, L, D)
        return self.out_proj(out.transpose(1, 2).reshape(B, L, C))
