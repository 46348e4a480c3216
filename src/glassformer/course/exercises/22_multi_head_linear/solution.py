"""Multi-head attention with linear layers, dropout and a mask."""

import math

from torch import Tensor, nn


class MultiHead(nn.Module):
    """out = out_proj([head_1 … head_H])        head_h = dropout(softmax(q_h k_hᵀ / √D)) v_h"""

    def __init__(self, dim: int, n_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if dim % n_heads:
            raise ValueError(f"dim must be divisible by n_heads; got {dim} and {n_heads}.")
        self.heads = (n_heads, dim // n_heads)
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, self.heads).transpose(1, 2)  # (B, L, C) → (B, H, L, D)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q = self.split(self.q_proj(x))
        k = self.split(self.k_proj(x))
        v = self.split(self.v_proj(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L, D) → (B, H, L, L)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)  # before softmax: exp(−∞) = 0
        weights = self.dropout(scores.softmax(dim=-1))
        out = weights @ v  # (B, H, L, L) × (B, H, L, D) → (B, H, L, D)
        return self.out_proj(out.transpose(1, 2).flatten(2))  # (B, H, L, D) → (B, L, C)
