import math

from torch import nn


class SelfAttention(nn.Module):
    """Self-attention with several heads."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def attend(self, q, k, v):
        """weights = softmax(q kᵀ / √D)        out = weights v"""
        ...

    def forward(self, x):
        """out = w_o([head_1 … head_H])"""
        ...
