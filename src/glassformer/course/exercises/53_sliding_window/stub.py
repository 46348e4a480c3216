import torch


def sliding_window(n_queries, n_keys, window):
    """mask[i, j] = 0 ≤ (S − L + i) − j < window"""
    ...
