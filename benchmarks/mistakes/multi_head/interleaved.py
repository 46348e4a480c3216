# mistake: heads take every H-th column
import torch
from torch import nn
class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads, self.d = n_heads, dim // n_heads
        self.q_weight = nn.Parameter(torch.randn(dim, dim))
        self.k_weight = nn.Parameter(torch.randn(dim, dim))
        self.v_weight = nn.Parameter(torch.randn(dim, dim))
        self.out_weight = nn.Parameter(torch.randn(dim, dim))
    def forward(self, x):
        B, L, C = x.shape
        def heads(y):
            return y.reshape(B, L, self.d, self.n_heads).permute(0, 3, 1, 2)
        q, k, v = (heads(x @ w) for w in (self.q_weight, self.k_weight, self.v_weight))
        w = torch.softmax(q @ k.transpose(2, 3) / self.d ** 0.5, dim=-1)
        o = (w @ v).permute(0, 2, 3, 1).reshape(B, L, C)
        return o @ self.out_weight, w
