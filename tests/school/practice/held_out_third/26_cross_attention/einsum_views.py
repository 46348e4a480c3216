# correct: einsum on views without any transpose
import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, context_dim, n_heads, head_dim, value_dim):
        super().__init__()
        self.sizes = n_heads, head_dim, value_dim
        inner = n_heads * head_dim
        self.q_proj = nn.Linear(dim, inner, bias=False)
        self.k_proj = nn.Linear(context_dim, inner, bias=False)
        self.v_proj = nn.Linear(context_dim, n_heads * value_dim, bias=False)
        self.out_proj = nn.Linear(n_heads * value_dim, dim, bias=False)

    def forward(self, x, context):
        h, d, e = self.sizes
        (b, l, _), s = x.shape, context.shape[1]
        q = self.q_proj(x).view(b, l, h, d)
        k = self.k_proj(context).view(b, s, h, d)
        v = self.v_proj(context).view(b, s, h, e)
        w = torch.einsum("blhd,bshd->bhls", q / d**0.5, k).softmax(dim=3)
        out = torch.einsum("bhls,bshe->blhe", w, v).reshape(b, l, h * e)
        return self.out_proj(out), w
