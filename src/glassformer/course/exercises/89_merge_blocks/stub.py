import torch


def merge(out_a, lse_a, out_b, lse_b):
    """(out, lse) of attention over two blocks of keys, from those of each block"""
    ...
