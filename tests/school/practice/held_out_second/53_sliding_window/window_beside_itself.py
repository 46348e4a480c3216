# mistake: allows `window` keys besides the query itself: distance ≤ window
import torch


def sliding_window(n_queries, n_keys, window):
    i = torch.arange(n_keys - n_queries, n_keys)[:, None]
    j = torch.arange(n_keys)[None, :]
    return (j <= i) & (i - j <= window)
