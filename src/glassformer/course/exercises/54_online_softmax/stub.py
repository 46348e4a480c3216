import torch


def online_softmax(blocks):
    """top = max score,  total = Σ exp(score − top), of each row, in one pass"""
    ...
