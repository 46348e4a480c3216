import torch


def mean_pool(hidden, mask):
    """The mean of the real tokens' vectors: (B, L, C), (B, L) → (B, C)"""
    ...


def info_nce(queries, documents, temperature):
    """In-batch negatives: (B, C), (N, C) with N ≥ B → a number"""
    ...
