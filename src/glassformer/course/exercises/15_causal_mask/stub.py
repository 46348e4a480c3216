import math

import torch


def causal_mask(n_queries, n_keys):
    """mask[i, j] = j ≤ n_keys − n_queries + i"""
    ...


def causal_attention(q, k, v):
    """out = softmax(q kᵀ / √D where the mask is True, −∞ elsewhere) v"""
    ...
