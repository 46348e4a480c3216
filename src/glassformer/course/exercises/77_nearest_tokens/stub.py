import torch


def nearest(weight, token, k):
    """The k tokens most similar to one: (V, C), t, k → cosines (k,), tokens (k,)"""
    ...
