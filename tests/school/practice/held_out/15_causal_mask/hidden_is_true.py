# mistake: the mask is True where a query may not attend, consistently in both functions.
import math

import torch


def causal_mask(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).triu(n_keys - n_queries + 1)


def causal_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    hidden = causal_mask(q.shape[-2], k.shape[-2])
    return scores.masked_fill(hidden, -math.inf).softmax(dim=-1) @ v
