# mistake: causal_mask is right, but causal_attention builds a mask of its own that is aligned top-left
import math

import torch


def causal_mask(n_queries, n_keys):
    rows = torch.arange(n_queries)[:, None] + (n_keys - n_queries)
    return torch.arange(n_keys)[None, :] <= rows


def causal_attention(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    future = torch.ones(L, S, dtype=torch.bool).triu(1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores[..., future] = float("-inf")
    return scores.softmax(-1) @ v
