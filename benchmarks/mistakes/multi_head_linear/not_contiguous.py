# mistake: view after transpose without contiguous
import torch
from torch import nn
class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        if dim % n_heads != 0:
            raise ValueError("dim % n_heads")
        self.n_heads, self.d = n_heads, dim // n_heads
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
    def forward(self, x, mask=None):
        B, L, C = x.shape
        def heads(y):
            return y.view(B, L, self.n_heads, self.d).transpose(1, 2)
        q, k, v = heads(self.q_proj(x)), heads(self.k_proj(x)), heads(self.v_proj(x))
        s = q @ k.transpose(2, 3) / self.d ** 0.5
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        w = self.dropout(s.softmax(-1))
        o = (w @ v).transpose(1, 2).view(B, L, C)
        return self.out_proj(o)
