# correct: lets view find the length with −1
import math

from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, dim // n_heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x, context):
        B = x.size(0)
        q, k, v = (
            proj(source).view(B, -1, self.n_heads, self.head_dim).transpose(1, 2)
            for proj, source in ((self.q_proj, x), (self.k_proj, context), (self.v_proj, context))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        out = scores.softmax(dim=-1) @ v
        return self.out_proj(out.transpose(1, 2).flatten(2))
