# mistake: softmax runs in the dtype of the scores and not in float32.
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
        self.weights_dropout, self.out_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.register_buffer(
            "mask", torch.tril(torch.ones(max_len, max_len)).bool(), persistent=False
        )

    def forward(self, q, k, v):
        B, L, C = q.shape
        S = k.shape[1]
        d = C // self.n_heads
        q = self.q_proj(q).view(B, L, self.n_heads, d).transpose(1, 2)
        k = self.k_proj(k).view(B, S, self.n_heads, d).transpose(1, 2)
        v = self.v_proj(v).view(B, S, self.n_heads, d).transpose(1, 2)
        att = q @ k.transpose(-2, -1) / math.sqrt(d)
        if self.causal:
            att = att.masked_fill(~self.mask[S - L : S, :S], float("-inf"))
        att = self.weights_dropout(att.softmax(dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(B, L, C)
        return self.out_dropout(self.out_proj(y))
