# mistake: forward forgets that attend returns a pair and passes it on whole.
import math

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
        weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
        return weights @ v, weights

    def forward(self, x):
        B, L, C = x.shape
        q = self.w_q(x).view(B, L, self.n_heads, -1).transpose(1, 2)
        k = self.w_k(x).view(B, L, self.n_heads, -1).transpose(1, 2)
        v = self.w_v(x).view(B, L, self.n_heads, -1).transpose(1, 2)
        out = self.attend(q, k, v)
        return self.w_o(out.transpose(1, 2).reshape(B, L, C))
