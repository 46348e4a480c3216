# mistake: uses 2 · arange(0, dim, 2), so that the factor 2 is in the exponent twice
import torch


def sinusoidal(positions, dim):
    i = torch.arange(0, dim, 2).to(positions)
    angles = positions[:, None] / 10000 ** (2 * i / dim)
    table = torch.zeros(len(positions), dim, dtype=positions.dtype)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table
