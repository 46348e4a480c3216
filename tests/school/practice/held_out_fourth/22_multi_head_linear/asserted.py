# mistake: an assert in the place of the ValueError
import math

from torch import nn


class MultiHead(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        assert dim % n_heads == 0, "dim must be divisible by n_heads"
        self.n_heads = n_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(dim, dim) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        split = lambda t: t.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        q, k, v = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        out = self.dropout(scores.softmax(-1)) @ v
        return self.out_proj(out.transpose(1, 2).flatten(2))
