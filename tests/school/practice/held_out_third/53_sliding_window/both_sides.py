# mistake: the window reaches to both sides, the future included
import torch


def sliding_window(n_queries, n_keys, window):
    i = torch.arange(n_keys - n_queries, n_keys).unsqueeze(1)
    j = torch.arange(n_keys).unsqueeze(0)
    return (i - j).abs() < window
