# mistake: two at once: the mask is sliced from the top left corner, and out_dropout is never called
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, n_heads, *, max_len, dropout=0.0, causal=False):
        super().__init__()
        if dim % n_heads:
            raise ValueError(f"dim={dim} is not divisible by n_heads={n_heads}")
        self.n_heads, self.head_dim, self.causal = n_heads, dim // n_heads, causal
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, dim, bias=False)
        self.v_proj = nn.Linear(dim, dim, bias=False)
        self.out_proj = nn.Linear(dim, dim, bias=False)
        self.weights_dropout = nn.Dropout(dropout)
        self.out_dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(max_len, max_len).tril().bool(), persistent=False)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.n_heads, self.head_dim).transpose(1, 2)

    def forward(self, q, k, v):
        q, k, v = self.split(self.q_proj(q)), self.split(self.k_proj(k)), self.split(self.v_proj(v))
        L, S = q.shape[2], k.shape[2]
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        if self.causal:
            scores = scores.masked_fill(~self.mask[:L, :S], -torch.inf)
        weights = torch.softmax(scores.float(), dim=-1).to(v.dtype)
        out = self.weights_dropout(weights) @ v
        return self.out_proj(out.transpose(1, 2).reshape(out.shape[0], L, -1))
