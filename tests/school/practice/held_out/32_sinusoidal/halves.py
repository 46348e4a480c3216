# mistake: writes all sines first and all cosines after them, instead of alternating.
import torch


def sinusoidal(positions, dim):
    evens = torch.arange(0, dim, 2, dtype=positions.dtype)
    angles = positions[:, None] / 10000 ** (evens / dim)
    return torch.cat((angles.sin(), angles.cos()), dim=-1)
