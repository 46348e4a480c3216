"""Self-attention with several heads, a common interview question."""

import math

from torch import Tensor, nn


class SelfAttention(nn.Module):
    """Self-attention with several heads."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """weights = softmax(q kᵀ / √D)        out = weights v"""
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L, D) → (B, H, L, L)
        weights = scores.softmax(dim=-1)
        return weights @ v, weights  # (B, H, L, L) × (B, H, L, D) → (B, H, L, D)

    def forward(self, x: Tensor) -> Tensor:
        """out = w_o([head_1 … head_H])"""
        projected = (self.w_q(x), self.w_k(x), self.w_v(x))
        # (B, L, C) → (B, L, H, D) → (B, H, L, D)
        q, k, v = (y.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for y in projected)
        out, _ = self.attend(q, k, v)
        return self.w_o(out.transpose(1, 2).flatten(2))  # (B, H, L, D) → (B, L, C)
