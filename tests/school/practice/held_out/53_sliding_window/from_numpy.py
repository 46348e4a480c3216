# correct: builds the mask in NumPy and hands it to torch
import numpy as np
import torch


def sliding_window(n_queries, n_keys, window):
    offset = n_keys - n_queries
    mask = np.tri(n_queries, n_keys, offset, dtype=bool)
    mask &= ~np.tri(n_queries, n_keys, offset - window, dtype=bool)
    return torch.from_numpy(mask)
