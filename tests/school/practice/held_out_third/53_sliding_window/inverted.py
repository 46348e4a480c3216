# mistake: True where a query may not attend
import torch


def sliding_window(n_queries, n_keys, window):
    i = torch.arange(n_keys - n_queries, n_keys).unsqueeze(1)
    j = torch.arange(n_keys).unsqueeze(0)
    return (j > i) | (j <= i - window)
