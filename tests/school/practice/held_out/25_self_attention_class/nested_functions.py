# correct: an inner function splits the heads, merging by concatenation
from math import sqrt

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
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / sqrt(k.shape[3])
        weights = nn.Softmax(dim=-1)(scores)
        return torch.einsum("bhij,bhjd->bhid", weights, v), weights

    def forward(self, x):
        def split(projected):
            return torch.stack(projected.chunk(self.n_heads, dim=2), dim=1)

        out, _unused = self.attend(split(self.w_q(x)), split(self.w_k(x)), split(self.w_v(x)))
        return self.w_o(torch.cat(list(out.unbind(1)), dim=2))
