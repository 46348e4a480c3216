# mistake: two at once: the queries start at position 0, and the window is one key too wide
import torch


def sliding_window(n_queries, n_keys, window):
    d = torch.arange(n_queries)[:, None] - torch.arange(n_keys)[None, :]
    return (d >= 0) & (d <= window)
