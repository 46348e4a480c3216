"""Multi-head self-attention from parameters alone."""

import math

import torch
from torch import Tensor, nn


class MultiHead(nn.Module):
    """head_h = softmax(q_h k_hᵀ / √D) v_h        out = [head_1 … head_H] W_o"""

    def __init__(self, dim: int, n_heads: int) -> None:
        super().__init__()
        self.heads = (n_heads, dim // n_heads)
        self.q_weight = nn.Parameter(torch.empty(dim, dim))
        self.k_weight = nn.Parameter(torch.empty(dim, dim))
        self.v_weight = nn.Parameter(torch.empty(dim, dim))
        self.out_weight = nn.Parameter(torch.empty(dim, dim))
        for weight in self.parameters():
            nn.init.xavier_uniform_(weight)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, self.heads).transpose(1, 2)  # (B, L, C) → (B, H, L, D)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q = self.split(x @ self.q_weight)
        k = self.split(x @ self.k_weight)
        v = self.split(x @ self.v_weight)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, L, D) → (B, H, L, L)
        weights = scores.softmax(dim=-1)
        out = weights @ v  # (B, H, L, L) × (B, H, L, D) → (B, H, L, D)
        merged = out.transpose(1, 2).flatten(2)  # (B, H, L, D) → (B, L, C)
        return merged @ self.out_weight, weights
