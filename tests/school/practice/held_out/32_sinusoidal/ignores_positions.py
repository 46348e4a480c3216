# mistake: uses 0, 1, 2, … as positions instead of those given.
import math

import torch


def sinusoidal(positions, dim):
    max_len = positions.shape[0]
    pe = torch.zeros(max_len, dim, dtype=positions.dtype)
    position = torch.arange(0, max_len).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, dim, 2) * -(math.log(10000.0) / dim))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe
