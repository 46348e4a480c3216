# mistake: the causal mask is sliced from the first L rows instead of the last
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
        self.register_buffer("hidden", torch.ones(max_len, max_len, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, q, k, v):
        L, S = q.shape[1], k.shape[1]
        q = self.q_proj(q).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(k).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(v).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.causal:
            scores = scores.masked_fill(self.hidden[:L, :S], -math.inf)
        w = scores.softmax(dim=-1, dtype=torch.float32).to(v.dtype)
        out = (self.weights_dropout(w) @ v).transpose(1, 2).flatten(2)
        return self.out_dropout(self.out_proj(out))
