# mistake: positions are replaced by 0, 1, 2 ...; the given numbers are ignored
import math

import torch


def sinusoidal(positions, dim):
    L = positions.shape[0]
    p = torch.arange(L, dtype=positions.dtype)[:, None]
    div = torch.exp(torch.arange(0, dim, 2, dtype=positions.dtype) * -(math.log(10000.0) / dim))
    pe = torch.zeros(L, dim, dtype=positions.dtype)
    pe[:, 0::2] = torch.sin(p * div)
    pe[:, 1::2] = torch.cos(p * div)
    return pe
