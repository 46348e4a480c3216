# correct: complex exponentials, with real and imaginary parts put side by side
import math

import torch


def sinusoidal(positions, dim):
    i = torch.arange(dim // 2, dtype=positions.dtype)
    frequency = torch.exp(-math.log(10000.0) * 2 * i / dim)
    wave = torch.polar(torch.ones((), dtype=positions.dtype), torch.outer(positions, frequency))
    pairs = torch.view_as_real(wave)
    return pairs.flip(-1).reshape(len(positions), dim)
