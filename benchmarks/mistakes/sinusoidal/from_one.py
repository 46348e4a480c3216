# mistake: positions counted from 1
import torch
def sinusoidal(positions, dim):
    i = torch.arange(0, dim, 2).to(positions)
    a = (positions[:, None] + 1) / 10000 ** (i / dim)
    out = torch.zeros(len(positions), dim, dtype=a.dtype)
    out[:, 0::2] = a.sin()
    out[:, 1::2] = a.cos()
    return out
