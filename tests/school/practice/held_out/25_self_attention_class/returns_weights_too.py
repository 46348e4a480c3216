# mistake: forward returns the weights along with the output.
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
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        return weights @ v, weights

    def forward(self, x):
        q, k, v = (
            w(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for w in (self.w_q, self.w_k, self.w_v)
        )
        out, weights = self.attend(q, k, v)
        return self.w_o(out.transpose(1, 2).flatten(2)), weights
