# correct: the buffer is a bias of 0 and −∞, and one head is computed after another
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, n_heads, *, max_len, dropout=0.0, causal=False):
        super().__init__()
        if dim % n_heads:
            raise ValueError(f"{dim} is not divisible by {n_heads}")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, dim, bias=False)
        self.v_proj = nn.Linear(dim, dim, bias=False)
        self.out_proj = nn.Linear(dim, dim, bias=False)
        self.weights_dropout = nn.Dropout(dropout)
        self.out_dropout = nn.Dropout(dropout)
        bias = torch.zeros(max_len, max_len)
        if causal:
            bias = torch.full((max_len, max_len), -torch.inf).triu(1)
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, q, k, v):
        L, S = q.shape[1], k.shape[1]
        bias = self.bias[S - L : S, :S] if L <= S else 0.0
        heads = []
        for one_q, one_k, one_v in zip(
            self.q_proj(q).chunk(self.n_heads, -1),
            self.k_proj(k).chunk(self.n_heads, -1),
            self.v_proj(v).chunk(self.n_heads, -1),
        ):
            scores = one_q @ one_k.mT / one_q.shape[-1] ** 0.5
            weights = torch.softmax(scores.float() + bias, dim=-1).to(one_v.dtype)
            heads.append(self.weights_dropout(weights) @ one_v)
        return self.out_dropout(self.out_proj(torch.cat(heads, dim=-1)))
