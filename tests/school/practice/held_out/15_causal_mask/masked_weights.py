# mistake: masks the weights after softmax and does not normalize them again.
import math

import torch


def causal_mask(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(diagonal=n_keys - n_queries)


def causal_attention(q, k, v):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    weights = weights.masked_fill(~causal_mask(q.shape[-2], k.shape[-2]), 0.0)
    return weights @ v
