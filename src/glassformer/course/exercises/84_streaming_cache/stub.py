import torch


def evict(k, v, n_sinks, window):
    """The first n_sinks and the last `window` tokens, and their positions in the cache"""
    ...
