# mistake: the exponent is i / dim instead of 2i / dim
import torch


def sinusoidal(positions, dim):
    i = torch.arange(dim // 2, dtype=positions.dtype)
    angles = positions[:, None] / 10000 ** (i / dim)
    table = torch.empty(len(positions), dim, dtype=positions.dtype)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table
