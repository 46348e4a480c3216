# mistake: the mask is right, but masked_fill's result is thrown away
import math

import torch


def causal_mask(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)


def causal_attention(q, k, v):
    mask = causal_mask(q.shape[-2], k.shape[-2])
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1) @ v
