# correct: frequencies by exp and log, computed in float64 and cast at the end
import math

import torch


def sinusoidal(positions, dim):
    frequencies = torch.exp(torch.arange(0, dim, 2).double() * (-math.log(10000.0) / dim))
    angles = torch.outer(positions.double(), frequencies)
    table = angles.new_empty(positions.shape[0], dim)
    table[:, ::2] = torch.sin(angles)
    table[:, 1::2] = torch.cos(angles)
    return table.to(positions.dtype)
