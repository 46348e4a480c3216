"""Multi-head attention as language models use it."""

import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """out = out_dropout(out_proj([head_1 … head_H]))

    head_h = weights_dropout(softmax(q_h k_hᵀ / √D)) v_h
    """

    hidden: Tensor

    def __init__(
        self, dim: int, n_heads: int, *, max_len: int, dropout: float = 0.0, causal: bool = False
    ) -> None:
        super().__init__()
        if dim % n_heads:
            raise ValueError(f"dim must be divisible by n_heads; got {dim} and {n_heads}.")
        self.heads, self.causal = (n_heads, dim // n_heads), causal
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, dim, bias=False)
        self.v_proj = nn.Linear(dim, dim, bias=False)
        self.out_proj = nn.Linear(dim, dim, bias=False)
        self.weights_dropout = nn.Dropout(dropout)
        self.out_dropout = nn.Dropout(dropout)
        hidden = torch.ones(max_len, max_len, dtype=torch.bool).triu(diagonal=1)
        # Not persistent: a checkpoint need not store what one line can rebuild.
        self.register_buffer("hidden", hidden, persistent=False)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, self.heads).transpose(1, 2)  # (B, L, C) → (B, H, L, D)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        L, S = q.shape[1], k.shape[1]
        q = self.split(self.q_proj(q))
        k = self.split(self.k_proj(k))
        v = self.split(self.v_proj(v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L, D) → (B, H, L, S)
        if self.causal:
            # The queries are the last L of S positions, so slice the bottom of the square.
            scores = scores.masked_fill(self.hidden[S - L : S, :S], -math.inf)
        # A long sum of exp needs more digits than bfloat16 has.
        weights = scores.softmax(dim=-1, dtype=torch.float32).to(v.dtype)
        out = self.weights_dropout(weights) @ v  # (B, H, L, S) × (B, H, S, D) → (B, H, L, D)
        merged = out.transpose(1, 2).flatten(2)  # (B, H, L, D) → (B, L, C)
        return self.out_dropout(self.out_proj(merged))
