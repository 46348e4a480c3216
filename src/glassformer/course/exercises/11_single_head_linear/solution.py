"""Self-attention with one head, as written in practice."""

import math

from torch import Tensor, nn


class SingleHead(nn.Module):
    """q, k, v = q_proj(x), k_proj(x), v_proj(x)        out = softmax(q kᵀ / √D) v"""

    def __init__(self, dim: int, head_dim: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.q_proj = nn.Linear(dim, head_dim, bias=False)
        self.k_proj = nn.Linear(dim, head_dim, bias=False)
        self.v_proj = nn.Linear(dim, head_dim, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)  # (B, L, C) → (B, L, D)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, L, L)
        weights = scores.softmax(dim=-1)
        return weights @ v, weights  # (B, L, L) × (B, L, D) → (B, L, D)
