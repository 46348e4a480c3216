import torch


def alibi(n_heads, n_queries, n_keys):
    """bias[h, i, j] = −2^(−8 (h + 1) / H) · |(S − L + i) − j|"""
    ...
