# mistake: `and` between two tensors asks for one truth value.
import torch


def sliding_window(n_queries, n_keys, window):
    offset = n_keys - n_queries
    distance = torch.arange(n_queries)[:, None] + offset - torch.arange(n_keys)
    return distance >= 0 and distance < window
