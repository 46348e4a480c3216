import torch


def previous_head(x):
    """What precedes each token, 0 for the first: (L, V) → (L, V)"""
    ...


def predict_next(x):
    """The mean of what followed earlier occurrences, 0 if there were none: (L, V) → (L, V)"""
    ...
