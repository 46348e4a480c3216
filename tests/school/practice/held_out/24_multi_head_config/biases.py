# mistake: two at once: the layers have biases, and keys are viewed with the queries' length.
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, n_heads, *, max_len, dropout=0.0, causal=False):
        super().__init__()
        if dim % n_heads:
            raise ValueError("dim is not divisible by n_heads")
        self.n_heads, self.causal = n_heads, causal
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.weights_dropout = nn.Dropout(dropout)
        self.out_dropout = nn.Dropout(dropout)
        self.register_buffer("hidden", torch.ones(max_len, max_len).triu(1).bool())

    def forward(self, q, k, v):
        B, L, C = q.shape
        q = self.q_proj(q).view(B, L, self.n_heads, -1).transpose(1, 2)
        k = self.k_proj(k).view(B, L, self.n_heads, -1).transpose(1, 2)
        v = self.v_proj(v).view(B, L, self.n_heads, -1).transpose(1, 2)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if self.causal:
            scores = scores.masked_fill(self.hidden[:L, :L], -math.inf)
        weights = scores.softmax(-1, dtype=torch.float32).to(v.dtype)
        out = (self.weights_dropout(weights) @ v).transpose(1, 2).reshape(B, L, C)
        return self.out_dropout(self.out_proj(out))
