# mistake: the width is split into (head_dim, n_heads), the heads being the inner dimension
import math

from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim, n_heads, head_dim, value_dim):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(dim, n_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(context_dim, n_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(context_dim, n_heads * value_dim, bias=False)
        self.out_proj = nn.Linear(n_heads * value_dim, dim, bias=False)

    def forward(self, x, context):
        def split(y):
            return y.unflatten(-1, (-1, self.n_heads)).permute(0, 3, 1, 2)

        q, k, v = split(self.q_proj(x)), split(self.k_proj(context)), split(self.v_proj(context))
        weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1)
        out = (weights @ v).permute(0, 2, 3, 1).flatten(2)
        return self.out_proj(out), weights
