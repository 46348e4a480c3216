# mistake: off by one: the query and `window` keys before it
import torch


def sliding_window(n_queries, n_keys, window):
    distance = torch.arange(n_keys - n_queries, n_keys)[:, None] - torch.arange(n_keys)
    return (distance >= 0) & (distance <= window)
