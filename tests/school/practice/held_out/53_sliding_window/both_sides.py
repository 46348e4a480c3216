# mistake: the window reaches to both sides, so a query sees keys after it.
import torch


def sliding_window(n_queries, n_keys, window):
    distance = torch.arange(n_keys - n_queries, n_keys)[:, None] - torch.arange(n_keys)
    return distance.abs() < window
