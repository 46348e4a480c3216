# correct: masked scores get the lowest finite number; einsum in the layout (B, L, H, D)
import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        width, rest = divmod(dim, n_heads)
        if rest:
            raise ValueError(f"dim ({dim}) must be divisible by n_heads ({n_heads})")
        self.shape = (n_heads, width)
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x, mask=None):
        q = self.q_proj(x).unflatten(2, self.shape)
        k = self.k_proj(x).unflatten(2, self.shape)
        v = self.v_proj(x).unflatten(2, self.shape)
        scores = torch.einsum("blhd,bshd->bhls", q, k) * self.shape[1] ** -0.5
        if mask is not None:
            scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        out = torch.einsum("bhls,bshd->blhd", weights, v)
        return self.out_proj(out.flatten(2))
