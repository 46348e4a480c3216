import torch


def additive_attention(hidden, context, w_q, w_k, v, mask):
    """States (B, L, C) and source words (B, S, E) → out (B, L, E), weights (B, L, S)"""
    ...
