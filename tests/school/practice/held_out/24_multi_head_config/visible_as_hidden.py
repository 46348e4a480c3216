# mistake: stores the lower triangle and fills where it is True, so a query sees only the future.
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, n_heads, *, max_len, dropout=0.0, causal=False):
        super().__init__()
        if dim % n_heads != 0:
            raise ValueError("dim must be divisible by n_heads")
        self.n_heads = n_heads
        self.causal = causal
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, dim, bias=False)
        self.v_proj = nn.Linear(dim, dim, bias=False)
        self.out_proj = nn.Linear(dim, dim, bias=False)
        self.weights_dropout = nn.Dropout(dropout)
        self.out_dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(max_len, max_len, dtype=torch.bool).tril())

    def forward(self, q, k, v):
        q = self.q_proj(q).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.k_proj(k).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.v_proj(v).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        L, S = q.size(2), k.size(2)
        scores = (q @ k.mT).float() / math.sqrt(q.size(-1))
        if self.causal:
            scores = scores.masked_fill(self.mask[S - L : S, :S], -math.inf)
        weights = self.weights_dropout(scores.softmax(-1).to(v.dtype))
        return self.out_dropout(self.out_proj((weights @ v).transpose(1, 2).flatten(2)))
