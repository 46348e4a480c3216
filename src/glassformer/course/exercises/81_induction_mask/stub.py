import torch


def induction_mask(tokens):
    """Where an induction head attends: (L,) → (L, L), True at (i, j) if it should"""
    ...
