# mistake: ignores the positions that were given and counts 0, 1, 2 …
import torch


def sinusoidal(positions, dim):
    p = torch.arange(positions.shape[0], dtype=positions.dtype)[:, None]
    i = torch.arange(0, dim, 2, dtype=positions.dtype)[None]
    angle = p / 10000 ** (i / dim)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
