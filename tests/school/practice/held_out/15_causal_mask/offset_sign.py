# mistake: shifts the diagonal by L − S, to the left instead of to the right.
import math

import torch


def causal_mask(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_queries - n_keys)


def causal_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    mask = causal_mask(q.shape[-2], k.shape[-2])
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1) @ v
