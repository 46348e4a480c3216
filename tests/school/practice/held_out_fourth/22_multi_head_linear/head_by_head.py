# correct: a loop over the heads that slices the matrices of the layers
import torch
from torch import nn
import torch.nn.functional as F


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        if dim % n_heads != 0:
            raise ValueError("dim is not divisible by n_heads: %d, %d" % (dim, n_heads))
        super().__init__()
        self.n_heads, self.size = n_heads, dim // n_heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        scores, values = [], []
        for h in range(self.n_heads):
            rows = slice(h * self.size, (h + 1) * self.size)
            q, k, v = (
                F.linear(x, layer.weight[rows], layer.bias[rows])
                for layer in (self.q_proj, self.k_proj, self.v_proj)
            )
            scores.append(q @ k.transpose(1, 2) / self.size**0.5)
            values.append(v)
        scores = torch.stack(scores, dim=1)
        if mask is not None:
            scores = torch.where(mask, scores, float("-inf"))
        heads = self.dropout(scores.softmax(-1)) @ torch.stack(values, dim=1)
        return self.out_proj(torch.cat(list(heads.unbind(1)), dim=-1))
