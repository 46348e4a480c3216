import torch


def mixture(x, router, up, down, k):
    """The weighted sum of the k experts that each token chooses: (T, C) → (T, C)"""
    ...
