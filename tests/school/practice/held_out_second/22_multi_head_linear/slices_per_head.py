# correct: a loop over the heads with slices of the projected width
import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        if dim % n_heads != 0:
            raise ValueError(f"dim {dim} is not divisible by n_heads {n_heads}")
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(dim, dim) for _ in range(4)
        )
        self.dropout = nn.Dropout(dropout)
        self.n_heads = n_heads

    def forward(self, x, mask=None):
        B, L, C = x.shape
        D = C // self.n_heads
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if mask is not None:
            mask = mask.expand(B, self.n_heads, L, L)
        results = []
        for h in range(self.n_heads):
            part = slice(h * D, (h + 1) * D)
            scores = torch.bmm(q[..., part], k[..., part].mT) / math.sqrt(D)
            if mask is not None:
                scores = torch.where(mask[:, h], scores, -math.inf)
            results.append(self.dropout(scores.softmax(-1)) @ v[..., part])
        return self.out_proj(torch.cat(results, -1))
