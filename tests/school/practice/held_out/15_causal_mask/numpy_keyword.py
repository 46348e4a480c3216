# mistake: passes NumPy's keyword k to torch.tril, which calls it diagonal.
import math

import torch


def causal_mask(n_queries, n_keys):
    return torch.tril(torch.ones(n_queries, n_keys, dtype=torch.bool), k=n_keys - n_queries)


def causal_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    mask = causal_mask(q.shape[-2], k.shape[-2])
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1) @ v
