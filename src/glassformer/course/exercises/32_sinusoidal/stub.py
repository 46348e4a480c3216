import torch


def sinusoidal(positions, dim):
    """table[p, 2i] = sin(p / 10000^(2i / dim))        table[p, 2i + 1] = cos(the same angle)"""
    ...
