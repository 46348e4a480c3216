# correct: einsum on (B, L, H, D) without ever transposing the heads
import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim, n_heads, head_dim, value_dim):
        super().__init__()
        self.H = n_heads
        self.q_proj = nn.Linear(dim, n_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(context_dim, n_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(context_dim, n_heads * value_dim, bias=False)
        self.out_proj = nn.Linear(n_heads * value_dim, dim, bias=False)

    def forward(self, x, context):
        q = self.q_proj(x).reshape(*x.shape[:2], self.H, -1)
        k = self.k_proj(context).reshape(*context.shape[:2], self.H, -1)
        v = self.v_proj(context).reshape(*context.shape[:2], self.H, -1)
        scores = torch.einsum("blhd,bshd->bhls", q, k) / q.shape[-1] ** 0.5
        weights = scores.softmax(-1)
        out = torch.einsum("bhls,bshe->blhe", weights, v).flatten(2)
        return self.out_proj(out), weights
