# mistake: the distance has a sign, so keys after the query get a positive bias
import torch


def alibi(n_heads, n_queries, n_keys):
    h = torch.arange(1, n_heads + 1)
    slopes = 2.0 ** (-8.0 * h / n_heads)
    i = torch.arange(n_queries)[:, None] + (n_keys - n_queries)
    j = torch.arange(n_keys)[None, :]
    return -slopes.view(-1, 1, 1) * (i - j)
