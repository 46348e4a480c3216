# correct: a loop over the heads with slices of the matrices, the outputs of the heads summed
import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, dim // n_heads
        self.q_weight = nn.Parameter(torch.randn(dim, dim) * 0.1)
        self.k_weight = nn.Parameter(torch.randn(dim, dim) * 0.1)
        self.v_weight = nn.Parameter(torch.randn(dim, dim) * 0.1)
        self.out_weight = nn.Parameter(torch.randn(dim, dim) * 0.1)

    def forward(self, x):
        total, maps = 0, []
        for h in range(self.n_heads):
            part = slice(h * self.head_dim, (h + 1) * self.head_dim)
            q, k, v = x @ self.q_weight[:, part], x @ self.k_weight[:, part], x @ self.v_weight[:, part]
            w = torch.softmax(q @ k.transpose(1, 2) / self.head_dim**0.5, dim=2)
            total = total + w @ v @ self.out_weight[part]
            maps.append(w)
        return total, torch.stack(maps, dim=1)
