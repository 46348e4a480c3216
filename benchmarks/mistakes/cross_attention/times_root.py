# mistake: multiplies by the root
import torch
from torch import nn
class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim, n_heads, head_dim, value_dim):
        super().__init__()
        self.h = n_heads
        self.q_proj = nn.Linear(dim, n_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(context_dim, n_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(context_dim, n_heads * value_dim, bias=False)
        self.out_proj = nn.Linear(n_heads * value_dim, dim, bias=False)
    def forward(self, x, context):
        q, k, v = self.q_proj(x), self.k_proj(context), self.v_proj(context)
        q, k, v = (y.unflatten(-1, (self.h, -1)).transpose(1, 2) for y in (q, k, v))
        w = (q @ k.mT * q.shape[-1] ** 0.5).softmax(-1)
        o = (w @ v).transpose(1, 2).flatten(2)
        return self.out_proj(o), w
