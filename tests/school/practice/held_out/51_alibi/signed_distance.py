# mistake: leaves out the absolute value, so keys after the query are favoured.
import torch


def alibi(n_heads, n_queries, n_keys):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / n_heads) for h in range(n_heads)])
    distance = torch.arange(n_keys - n_queries, n_keys)[:, None] - torch.arange(n_keys)
    return -slopes[:, None, None] * distance
