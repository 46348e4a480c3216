# mistake: the cosine of a pair has its own frequency (exponent (2i + 1) / dim)
import torch


def sinusoidal(positions, dim):
    j = torch.arange(dim, dtype=positions.dtype)
    angles = positions[:, None] / 10000 ** (j / dim)
    table = torch.empty_like(angles)
    table[:, 0::2] = angles[:, 0::2].sin()
    table[:, 1::2] = angles[:, 1::2].cos()
    return table
