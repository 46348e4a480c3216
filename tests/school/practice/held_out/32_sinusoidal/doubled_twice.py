# mistake: multiplies the even numbers by 2 once more, so the exponents run to 2.
import torch


def sinusoidal(positions, dim):
    i = torch.arange(0, dim, 2, dtype=positions.dtype)
    angles = positions[:, None] / torch.pow(torch.tensor(10000.0, dtype=positions.dtype), 2 * i / dim)
    table = torch.zeros(len(positions), dim, dtype=positions.dtype)
    table[:, 0::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table
