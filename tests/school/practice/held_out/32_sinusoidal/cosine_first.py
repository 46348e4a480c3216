# mistake: two at once: cosines in the even columns, and angles that are multiplied by the wavelengths.
import torch


def sinusoidal(positions, dim):
    exponent = torch.arange(0, dim, 2).to(positions) / dim
    angles = positions[:, None] * 10000**exponent
    return torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(-2)
