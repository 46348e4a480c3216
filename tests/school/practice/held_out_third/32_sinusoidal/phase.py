# correct: cosine as a sine moved by a quarter turn, each frequency repeated twice
import math

import torch


def sinusoidal(positions, dim):
    i = torch.arange(dim // 2, dtype=torch.float64)
    freq = torch.exp(-math.log(10000.0) * 2 * i / dim).repeat_interleave(2)
    phase = torch.tensor([0.0, math.pi / 2], dtype=torch.float64).repeat(dim // 2)
    table = torch.sin(positions.double().unsqueeze(1) * freq + phase)
    return table.to(positions.dtype)
