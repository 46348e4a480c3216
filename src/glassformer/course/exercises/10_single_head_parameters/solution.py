"""Self-attention with one head: every matrix and every product is visible."""

import math

import torch
from torch import Tensor, nn


class SingleHead(nn.Module):
    """q, k, v = x W_q, x W_k, x W_v        out = softmax(q kᵀ / √D) v"""

    def __init__(self, dim: int, head_dim: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.q_weight = nn.Parameter(torch.empty(dim, head_dim))
        self.k_weight = nn.Parameter(torch.empty(dim, head_dim))
        self.v_weight = nn.Parameter(torch.empty(dim, head_dim))
        for weight in (self.q_weight, self.k_weight, self.v_weight):
            nn.init.xavier_uniform_(weight)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        q = x @ self.q_weight  # (B, L, C) × (C, D) → (B, L, D)
        k = x @ self.k_weight
        v = x @ self.v_weight
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, L, L)
        weights = scores.softmax(dim=-1)
        return weights @ v, weights  # (B, L, L) × (B, L, D) → (B, L, D)
