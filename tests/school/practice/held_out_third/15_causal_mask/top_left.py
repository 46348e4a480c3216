# mistake: the triangle is aligned at the start instead of the end
import math

import torch


def causal_mask(n_queries, n_keys):
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril()


def causal_attention(q, k, v):
    mask = causal_mask(q.shape[-2], k.shape[-2])
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v
