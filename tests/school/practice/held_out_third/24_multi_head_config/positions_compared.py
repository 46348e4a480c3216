# correct: the mask comes from comparing positions; einsum; softmax of the scores cast to float
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, n_heads, *, max_len, dropout=0.0, causal=False):
        super().__init__()
        if dim % n_heads:
            raise ValueError(f"dim = {dim} is not divisible by n_heads = {n_heads}")
        self.heads, self.causal = n_heads, causal
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(dim, dim, bias=False))
        self.weights_dropout, self.out_dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        place = torch.arange(max_len)
        self.register_buffer("allowed", place[None, :] <= place[:, None], persistent=False)

    def _heads(self, x):
        B, N, C = x.shape
        return x.reshape(B, N, self.heads, C // self.heads).permute(0, 2, 1, 3)

    def forward(self, q, k, v):
        q, k, v = self._heads(self.q_proj(q)), self._heads(self.k_proj(k)), self._heads(self.v_proj(v))
        L, S = q.shape[2], k.shape[2]
        scores = torch.einsum("bhld,bhsd->bhls", q, k) / math.sqrt(q.shape[3])
        if self.causal:
            scores = scores.masked_fill(self.allowed[S - L : S, :S].logical_not(), float("-inf"))
        weights = torch.softmax(scores.float(), dim=-1).type_as(v)
        out = torch.einsum("bhls,bhsd->blhd", self.weights_dropout(weights), v).flatten(2)
        return self.out_dropout(self.out_proj(out))
