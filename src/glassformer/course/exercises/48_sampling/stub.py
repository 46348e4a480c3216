import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    """logits / temperature → the k largest → the fewest that reach p → softmax"""
    ...
