# mistake: takes the queries for the first positions instead of the last.
import torch


def alibi(n_heads, n_queries, n_keys):
    slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    distance = (torch.arange(n_queries)[:, None] - torch.arange(n_keys)[None, :]).abs()
    return -slopes.view(-1, 1, 1) * distance
