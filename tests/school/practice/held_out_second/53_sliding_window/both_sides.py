# mistake: uses the absolute distance, so that a query also sees the keys after it
import torch


def sliding_window(n_queries, n_keys, window):
    i = torch.arange(n_keys - n_queries, n_keys)[:, None]
    j = torch.arange(n_keys)[None, :]
    return (i - j).abs() < window
