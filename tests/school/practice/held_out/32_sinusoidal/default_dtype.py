# mistake: fills a float32 table, so the dtype of the positions is lost.
import torch


def sinusoidal(positions, dim):
    table = torch.zeros(positions.shape[0], dim)
    evens = torch.arange(0, dim, 2)
    angles = positions[:, None] / 10000 ** (evens / dim)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table
