# correct: folds the heads into the batch and uses bmm, with a bias for the mask
import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        if dim % n_heads != 0:
            raise ValueError(f"dim={dim} is not divisible by n_heads={n_heads}")
        super().__init__()
        self.num_heads = n_heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def _fold(self, x):
        B, L, C = x.shape
        x = x.reshape(B, L, self.num_heads, C // self.num_heads).permute(0, 2, 1, 3)
        return x.reshape(B * self.num_heads, L, -1)

    def forward(self, x, mask=None):
        B, L, C = x.shape
        q, k, v = self._fold(self.q_proj(x)), self._fold(self.k_proj(x)), self._fold(self.v_proj(x))
        scores = torch.bmm(q, k.transpose(1, 2)) / q.size(-1) ** 0.5
        if mask is not None:
            full = mask.expand(B, self.num_heads, L, L).reshape(-1, L, L)
            bias = torch.zeros_like(scores)
            bias[~full] = float("-inf")
            scores = scores + bias
        weights = self.dropout(torch.softmax(scores, dim=2))
        heads = torch.bmm(weights, v).view(B, self.num_heads, L, -1)
        return self.out_proj(torch.cat([heads[:, h] for h in range(self.num_heads)], dim=2))
