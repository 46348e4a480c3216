# correct: compares positions, and hides by torch.where
import torch


def causal_mask(n_queries, n_keys):
    query_position = torch.arange(n_keys - n_queries, n_keys)
    key_position = torch.arange(n_keys)
    return key_position.unsqueeze(0) <= query_position.unsqueeze(1)


def causal_attention(q, k, v):
    mask = causal_mask(q.shape[-2], k.shape[-2])
    scores = torch.einsum("...ld,...sd->...ls", q, k) / q.shape[-1] ** 0.5
    scores = torch.where(mask, scores, torch.full_like(scores, -torch.inf))
    return torch.einsum("...ls,...se->...le", scores.softmax(-1), v)
