# mistake: causal_mask is True above the diagonal, so that queries see only the future and not the past
import math

import torch


def causal_mask(n_queries, n_keys):
    return torch.triu(torch.ones(n_queries, n_keys), diagonal=1 + n_keys - n_queries).bool()


def causal_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    mask = causal_mask(q.shape[-2], k.shape[-2])
    return scores.masked_fill(mask == 0, -1e9).softmax(-1) @ v
