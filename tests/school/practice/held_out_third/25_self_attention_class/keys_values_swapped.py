# mistake: the keys are projected with w_v and the values with w_k
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
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        weights = scores.softmax(dim=-1)
        return weights @ v, weights

    def forward(self, x):
        def heads(y):
            return y.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

        q, v, k = heads(self.w_q(x)), heads(self.w_k(x)), heads(self.w_v(x))
        out, _ = self.attend(q, k, v)
        return self.w_o(out.transpose(1, 2).flatten(2))
