# correct: the difference of two triangles
import torch


def sliding_window(n_queries, n_keys, window):
    ones = torch.ones(n_queries, n_keys, dtype=torch.bool)
    shift = n_keys - n_queries
    return ones.tril(shift) & ~ones.tril(shift - window)
