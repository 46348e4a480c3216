# mistake: two at once: the head width is fixed at 64, and softmax runs over dimension 2.
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
        scores = torch.matmul(q, k.transpose(2, 3)) / 8.0
        weights = torch.softmax(scores, dim=2)
        return torch.matmul(weights, v), weights

    def forward(self, x):
        B, L, d_model = x.shape
        q = self.w_q(x).view(B, L, self.n_heads, -1).permute(0, 2, 1, 3)
        k = self.w_k(x).view(B, L, self.n_heads, -1).permute(0, 2, 1, 3)
        v = self.w_v(x).view(B, L, self.n_heads, -1).permute(0, 2, 1, 3)
        out, _ = self.attend(q, k, v)
        return self.w_o(out.permute(0, 2, 1, 3).reshape(B, L, d_model))
