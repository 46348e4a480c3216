# correct: stores the mask of visible keys as a buffer, indexes its last rows, and casts the scores to float32 by hand
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, n_heads, *, max_len, dropout=0.0, causal=False):
        super().__init__()
        head_dim, rest = divmod(dim, n_heads)
        if rest:
            raise ValueError(f"{dim} is not divisible by {n_heads}")
        self.shape = (n_heads, head_dim)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(dim, dim, bias=False))
        self.weights_dropout = nn.Dropout(dropout)
        self.out_dropout = nn.Dropout(dropout)
        self.causal = causal
        i = torch.arange(max_len)
        self.register_buffer("visible", i[:, None] >= i[None, :], persistent=False)

    def forward(self, q, k, v):
        L, S = q.shape[1], k.shape[1]
        q = self.q_proj(q).unflatten(2, self.shape)
        k = self.k_proj(k).unflatten(2, self.shape)
        v = self.v_proj(v).unflatten(2, self.shape)
        scores = torch.einsum("blhd,bshd->bhls", q, k) * self.shape[1] ** -0.5
        if self.causal:
            rows = self.visible[:S, :S][S - L :]
            scores = torch.where(rows, scores, torch.full_like(scores, -torch.inf))
        weights = scores.float().softmax(-1).to(v.dtype)
        out = torch.einsum("bhls,bshd->blhd", self.weights_dropout(weights), v)
        return self.out_dropout(self.out_proj(out.flatten(2)))
