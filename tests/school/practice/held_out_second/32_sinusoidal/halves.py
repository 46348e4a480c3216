# mistake: puts all sines first and all cosines after them, as tensor2tensor does, instead of alternating
import torch


def sinusoidal(positions, dim):
    evens = torch.arange(0, dim, 2).to(positions)
    angles = positions[:, None] / 10000 ** (evens / dim)
    return torch.cat((angles.sin(), angles.cos()), dim=-1)
