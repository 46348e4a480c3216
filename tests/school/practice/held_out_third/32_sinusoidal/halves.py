# mistake: all sines first, then all cosines, instead of interleaved
import torch


def sinusoidal(positions, dim):
    evens = torch.arange(0, dim, 2, dtype=positions.dtype)
    angles = positions[:, None] / 10000 ** (evens / dim)
    return torch.cat((angles.sin(), angles.cos()), dim=-1)
