# mistake: uses > 0, so a query does not see itself.
import torch


def sliding_window(n_queries, n_keys, window):
    distance = torch.arange(n_keys - n_queries, n_keys)[:, None] - torch.arange(n_keys)
    return (distance > 0) & (distance <= window)
