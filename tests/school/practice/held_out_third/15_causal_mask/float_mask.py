# mistake: the mask is made of floats 1 and 0 instead of booleans
import math

import torch


def causal_mask(n_queries, n_keys):
    return torch.tril(torch.ones(n_queries, n_keys), diagonal=n_keys - n_queries)


def causal_attention(q, k, v):
    mask = causal_mask(q.shape[-2], k.shape[-2])
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(mask == 0, -math.inf).softmax(-1) @ v
