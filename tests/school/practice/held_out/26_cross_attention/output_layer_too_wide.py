# mistake: out_proj expects heads of head_dim where the values have value_dim.
import math

from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim, n_heads, head_dim, value_dim):
        super().__init__()
        self.n_heads = n_heads
        inner = n_heads * head_dim
        self.q_proj = nn.Linear(dim, inner, bias=False)
        self.k_proj = nn.Linear(context_dim, inner, bias=False)
        self.v_proj = nn.Linear(context_dim, n_heads * value_dim, bias=False)
        self.out_proj = nn.Linear(inner, dim, bias=False)

    def forward(self, x, context):
        split = lambda t: t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        q, k, v = split(self.q_proj(x)), split(self.k_proj(context)), split(self.v_proj(context))
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2)), weights
