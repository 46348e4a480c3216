"""Queries from one sequence, keys and values from another."""

import math

from torch import Tensor, nn


class CrossAttention(nn.Module):
    """head_h = softmax(q_h k_hᵀ / √D) v_h, with q from x, and k and v from context"""

    def __init__(
        self, dim: int, context_dim: int, n_heads: int, head_dim: int, value_dim: int
    ) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(dim, n_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(context_dim, n_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(context_dim, n_heads * value_dim, bias=False)
        self.out_proj = nn.Linear(n_heads * value_dim, dim, bias=False)

    def split(self, x: Tensor) -> Tensor:
        # No length or width appears here, so q, k and v may each have their own.
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        q = self.split(self.q_proj(x))  # (B, L, C) → (B, H, L, D)
        k = self.split(self.k_proj(context))  # → (B, H, S, D)
        v = self.split(self.v_proj(context))  # → (B, H, S, E)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L, D) → (B, H, L, S)
        weights = scores.softmax(dim=-1)
        out = weights @ v  # (B, H, L, S) × (B, H, S, E) → (B, H, L, E)
        return self.out_proj(out.transpose(1, 2).flatten(2)), weights  # (B, H, L, E) → (B, L, C)
