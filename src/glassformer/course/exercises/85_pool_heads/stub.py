import torch


def pool_heads(weight, n_heads, n_kv_heads):
    """Mean of the projections in each group of neighbouring heads: (H · D, C) → (K · D, C)"""
    ...
