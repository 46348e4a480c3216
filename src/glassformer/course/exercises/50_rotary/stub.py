import torch


def rotary(q, k, positions, base=10000.0):
    """(a, b) → (a cos θ − b sin θ, b cos θ + a sin θ),  θ = position · base^(−i / P)"""
    ...
