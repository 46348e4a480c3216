# mistake: the heads are merged without transposing back
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
        w = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
        return w @ v, w

    def forward(self, x):
        B, L, C = x.shape
        d = C // self.n_heads
        q = self.w_q(x).view(B, L, self.n_heads, d).transpose(1, 2)
        k = self.w_k(x).view(B, L, self.n_heads, d).transpose(1, 2)
        v = self.w_v(x).view(B, L, self.n_heads, d).transpose(1, 2)
        out, _ = self.attend(q, k, v)
        return self.w_o(out.reshape(B, L, C))
