# mistake: divides the scores by the root of value_dim instead of head_dim
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

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, x, context):
        q = self.split(self.q_proj(x))
        k = self.split(self.k_proj(context))
        v = self.split(self.v_proj(context))
        weights = (q @ k.transpose(-2, -1) / math.sqrt(v.shape[-1])).softmax(dim=-1)
        out = self.out_proj((weights @ v).transpose(1, 2).flatten(2))
        return out, weights
