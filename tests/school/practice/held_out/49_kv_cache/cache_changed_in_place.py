# mistake: returns a list as the cache and changes the list it received.
import math

import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)

    def forward(self, x, cache=None):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if cache is None:
            cache = [k, v]
        else:
            cache[0] = torch.cat([cache[0], k], dim=1)
            cache[1] = torch.cat([cache[1], v], dim=1)
        L, S = q.shape[1], cache[0].shape[1]
        mask = torch.ones(L, S, dtype=torch.bool).tril(S - L)
        scores = (q @ cache[0].mT / math.sqrt(q.shape[-1])).masked_fill(~mask, -math.inf)
        return scores.softmax(-1) @ cache[1], cache
