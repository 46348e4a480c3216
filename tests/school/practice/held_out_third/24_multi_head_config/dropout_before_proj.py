# mistake: out_dropout acts before out_proj
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, n_heads, *, max_len, dropout=0.0, causal=False):
        super().__init__()
        if dim % n_heads != 0:
            raise ValueError(f"{dim} % {n_heads} != 0")
        self.n_heads = n_heads
        self.causal = causal
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, dim, bias=False)
        self.v_proj = nn.Linear(dim, dim, bias=False)
        self.out_proj = nn.Linear(dim, dim, bias=False)
        self.weights_dropout = nn.Dropout(dropout)
        self.out_dropout = nn.Dropout(dropout)
        mask = torch.ones(max_len, max_len, dtype=torch.bool).tril()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, q, k, v):
        B, L, C = q.shape
        S = k.shape[1]
        D = C // self.n_heads
        q = self.q_proj(q).view(B, L, self.n_heads, D).transpose(1, 2)
        k = self.k_proj(k).view(B, S, self.n_heads, D).transpose(1, 2)
        v = self.v_proj(v).view(B, S, self.n_heads, D).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(D)
        if self.causal:
            scores = scores.masked_fill(~self.mask[S - L : S, :S], -math.inf)
        w = self.weights_dropout(scores.softmax(-1, dtype=torch.float32).to(v.dtype))
        out = (w @ v).transpose(1, 2).reshape(B, L, C)
        return self.out_proj(self.out_dropout(out))
