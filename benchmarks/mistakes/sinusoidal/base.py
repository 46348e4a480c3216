# mistake: 1000 instead of 10000
import torch
def sinusoidal(positions, dim):
    i = torch.arange(0, dim, 2).to(positions)
    a = positions[:, None] / 1000 ** (i / dim)
    out = torch.zeros(len(positions), dim, dtype=a.dtype)
    out[:, 0::2] = a.sin()
    out[:, 1::2] = a.cos()
    return out
