# mistake: attend divides by the root of d_model instead of that of the head's width.
import math

from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_model = d_model
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def attend(self, q, k, v):
        weights = (q @ k.transpose(-2, -1) / math.sqrt(self.d_model)).softmax(dim=-1)
        return weights @ v, weights

    def forward(self, x):
        q = self.w_q(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.w_k(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        v = self.w_v(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        out, _ = self.attend(q, k, v)
        return self.w_o(out.transpose(1, 2).flatten(2))
