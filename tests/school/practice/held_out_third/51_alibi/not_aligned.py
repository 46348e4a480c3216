# mistake: the queries start at position 0 instead of S - L
import torch


def alibi(n_heads, n_queries, n_keys):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / n_heads) for h in range(n_heads)])
    distance = (torch.arange(n_queries)[:, None] - torch.arange(n_keys)[None]).abs()
    return -(slopes[:, None, None] * distance)
