# mistake: takes the queries for the first positions.
import torch


def sliding_window(n_queries, n_keys, window):
    i = torch.arange(n_queries)[:, None]
    j = torch.arange(n_keys)[None, :]
    return (j <= i) & (j > i - window)
