# mistake: slices the first L rows of the mask instead of rows S − L to S
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, n_heads, *, max_len, dropout=0.0, causal=False):
        super().__init__()
        if dim % n_heads:
            raise ValueError("dim must be divisible by n_heads")
        self.n_heads, self.causal = n_heads, causal
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, dim, bias=False)
        self.v_proj = nn.Linear(dim, dim, bias=False)
        self.out_proj = nn.Linear(dim, dim, bias=False)
        self.weights_dropout = nn.Dropout(dropout)
        self.out_dropout = nn.Dropout(dropout)
        hidden = torch.ones(max_len, max_len, dtype=torch.bool).triu(1)
        self.register_buffer("hidden", hidden, persistent=False)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, q, k, v):
        q, k, v = self.split(self.q_proj(q)), self.split(self.k_proj(k)), self.split(self.v_proj(v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.causal:
            scores = scores.masked_fill(self.hidden[: q.shape[2], : k.shape[2]], -math.inf)
        weights = scores.softmax(dim=-1, dtype=torch.float32).to(v.dtype)
        out = self.weights_dropout(weights) @ v
        return self.out_dropout(self.out_proj(out.transpose(1, 2).flatten(2)))
