# mistake: two at once: dropout acts on the output, and nothing is raised where dim is not divisible
import math

from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        self.h = n_heads
        self.d = dim // n_heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        B, L, C = x.shape
        q = self.q_proj(x).view(B, L, self.h, self.d).transpose(1, 2)
        k = self.k_proj(x).view(B, L, self.h, self.d).transpose(1, 2)
        v = self.v_proj(x).view(B, L, self.h, self.d).transpose(1, 2)
        s = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        if mask is not None:
            s = s.masked_fill(mask == False, -math.inf)
        w = s.softmax(-1)
        y = (w @ v).transpose(1, 2).contiguous().view(B, L, C)
        return self.dropout(self.out_proj(y))
