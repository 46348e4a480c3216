# mistake: the heads stay after the length, so each token attends among its own heads.
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
        q = self.w_q(x).unflatten(-1, (self.n_heads, -1))
        k = self.w_k(x).unflatten(-1, (self.n_heads, -1))
        v = self.w_v(x).unflatten(-1, (self.n_heads, -1))
        out, _ = self.attend(q, k, v)
        return self.w_o(out.flatten(2))
