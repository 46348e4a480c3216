# mistake: two at once: scales by the width of the values, and softmax runs over the heads
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim, n_heads, head_dim, value_dim):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj = nn.Linear(dim, n_heads * head_dim, bias=False)
        self.k_proj = nn.Linear(context_dim, n_heads * head_dim, bias=False)
        self.v_proj = nn.Linear(context_dim, n_heads * value_dim, bias=False)
        self.out_proj = nn.Linear(n_heads * value_dim, dim, bias=False)
        self.scale = value_dim**-0.5

    def forward(self, x, context):
        B, L, S = x.size(0), x.size(1), context.size(1)
        q = self.q_proj(x).reshape(B, L, self.n_heads, -1).transpose(1, 2)
        k = self.k_proj(context).reshape(B, S, self.n_heads, -1).transpose(1, 2)
        v = self.v_proj(context).reshape(B, S, self.n_heads, -1).transpose(1, 2)
        attn = (q @ k.transpose(-1, -2) * self.scale).softmax(dim=1)
        out = (attn @ v).transpose(1, 2).reshape(B, L, -1)
        return self.out_proj(out), attn
