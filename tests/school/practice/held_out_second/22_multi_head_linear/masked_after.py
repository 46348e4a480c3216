# mistake: two at once: sets masked weights to 0 after softmax, so that rows no longer sum to 1; and drops out the result of out_proj instead of the weights
import math

from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        if dim % n_heads:
            raise ValueError("dim must be divisible by n_heads")
        self.n_heads, self.head_dim = n_heads, dim // n_heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        B, L, C = x.shape
        q = self.q_proj(x).view(B, L, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(B, L, self.n_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(B, L, self.n_heads, self.head_dim).transpose(1, 2)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)).softmax(-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
        out = (weights @ v).transpose(1, 2).reshape(B, L, C)
        return self.dropout(self.out_proj(out))
