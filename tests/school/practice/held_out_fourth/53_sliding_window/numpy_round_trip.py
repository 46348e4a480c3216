# correct: the mask is made by NumPy and handed over with from_numpy
import numpy as np
import torch


def sliding_window(n_queries, n_keys, window):
    place = np.arange(n_queries)[:, None] + n_keys - n_queries
    before = place - np.arange(n_keys)
    return torch.from_numpy(np.logical_and(before >= 0, before < window))
