# mistake: forgets the minus, so distant keys count more.
import torch


def alibi(n_heads, n_queries, n_keys):
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    queries = torch.arange(n_queries) + n_keys - n_queries
    distance = (queries[:, None] - torch.arange(n_keys)[None, :]).abs()
    return slopes[:, None, None] * distance
