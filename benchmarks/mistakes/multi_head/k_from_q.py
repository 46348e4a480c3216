# mistake: k uses the queries' matrix
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
            return y.reshape(B, L, self.n_heads, self.d).transpose(1, 2)
        q = heads(x @ self.q_weight)
        k = heads(x @ self.q_weight)
        v = heads(x @ self.v_weight)
        w = torch.softmax(q @ k.transpose(2, 3) / self.d ** 0.5, dim=-1)
        o = (w @ v).transpose(1, 2).reshape(B, L, C)
        return o @ self.out_weight, w
