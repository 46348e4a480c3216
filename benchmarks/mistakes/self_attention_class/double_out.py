# mistake: the output layer is applied twice
import torch
from torch import nn
class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
    def attend(self, q, k, v):
        w = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
        return w @ v, w
    def forward(self, x):
        B, L, C = x.shape
        q, k, v = (f(x).view(B, L, self.n_heads, -1).transpose(1, 2) for f in (self.w_q, self.w_k, self.w_v))
        out, _ = self.attend(q, k, v)
        return self.w_o(self.w_o(out.transpose(1, 2).reshape(B, L, C)))
