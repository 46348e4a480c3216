import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    """Keep tokens at least min_p times as likely as the likeliest: (B, V) → (B, V)"""
    ...
