# correct: folds the heads into the batch before it calls attend with one head
import math

from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def attend(self, q, k, v):
        weights = q.div(math.sqrt(q.size(-1))).matmul(k.transpose(-1, -2)).softmax(-1)
        return weights.matmul(v), weights

    def forward(self, x):
        B, L, C = x.shape
        H, D = self.n_heads, self.d_head
        q, k, v = (
            w(x).reshape(B, L, H, D).transpose(1, 2).reshape(B * H, 1, L, D)
            for w in (self.w_q, self.w_k, self.w_v)
        )
        out = self.attend(q, k, v)[0].reshape(B, H, L, D)
        return self.w_o(out.movedim(1, 2).reshape(B, L, C))
