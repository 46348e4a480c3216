# mistake: two at once: the mask is read the wrong way round, and dropout acts on the scores
import math

from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        if dim % n_heads != 0:
            raise ValueError("dim is not divisible by n_heads")
        self.n_heads = n_heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        B, L, C = x.shape
        q = self.q_proj(x).view(B, L, self.n_heads, -1).transpose(1, 2)
        k = self.k_proj(x).view(B, L, self.n_heads, -1).transpose(1, 2)
        v = self.v_proj(x).view(B, L, self.n_heads, -1).transpose(1, 2)
        scores = self.dropout(q @ k.transpose(-2, -1) / math.sqrt(C // self.n_heads))
        if mask is not None:
            scores = scores.masked_fill(mask, -math.inf)
        return self.out_proj((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, L, C))
