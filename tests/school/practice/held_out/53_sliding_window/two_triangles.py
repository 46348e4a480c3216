# correct: one triangle without another
import torch


def sliding_window(n_queries, n_keys, window):
    full = torch.ones(n_queries, n_keys, dtype=torch.bool)
    offset = n_keys - n_queries
    return full.tril(offset) & ~full.tril(offset - window)
