# mistake: divides by the root of value_dim instead of head_dim
import math

from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim, n_heads, head_dim, value_dim):
        super().__init__()
        self.h, self.d, self.e = n_heads, head_dim, value_dim
        self.q_proj = nn.Linear(dim, n_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(context_dim, n_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(context_dim, n_heads * value_dim, bias=False)
        self.out_proj = nn.Linear(n_heads * value_dim, dim, bias=False)

    def forward(self, x, context):
        q = self.q_proj(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
        k = self.k_proj(context).unflatten(-1, (self.h, -1)).transpose(1, 2)
        v = self.v_proj(context).unflatten(-1, (self.h, -1)).transpose(1, 2)
        weights = (q @ k.transpose(-2, -1) / math.sqrt(self.e)).softmax(-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2)), weights
