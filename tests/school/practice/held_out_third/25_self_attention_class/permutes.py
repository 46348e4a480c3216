# correct: einsum in attend, permute in forward
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def attend(self, q, k, v):
        logits = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        attn = logits.softmax(-1)
        return torch.einsum("bhij,bhjd->bhid", attn, v), attn

    def forward(self, x):
        B, L, C = x.shape
        qkv = torch.stack([self.w_q(x), self.w_k(x), self.w_v(x)])  # (3, B, L, C)
        q, k, v = qkv.view(3, B, L, self.n_heads, C // self.n_heads).permute(0, 1, 3, 2, 4)
        out, _ = self.attend(q, k, v)
        return self.w_o(out.permute(0, 2, 1, 3).contiguous().view(B, L, C))
