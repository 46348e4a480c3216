# mistake: uses i / dim as the exponent, so the frequencies fall only half as fast.
import torch


def sinusoidal(positions, dim):
    i = torch.arange(dim // 2, dtype=positions.dtype)
    angles = positions.unsqueeze(1) * 10000.0 ** (-i / dim)
    return torch.stack([torch.sin(angles), torch.cos(angles)], dim=-1).flatten(1)
