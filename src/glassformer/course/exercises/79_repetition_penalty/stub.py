import torch


def penalize(logits, seen, penalty):
    """Make tokens that have occurred less likely: (B, V), (B, L) → (B, V)"""
    ...
