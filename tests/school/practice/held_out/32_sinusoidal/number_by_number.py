# correct: two loops with math.sin and math.cos
import math

import torch


def sinusoidal(positions, dim):
    rows = []
    for p in positions.tolist():
        row = []
        for i in range(dim // 2):
            angle = p / 10000 ** (2 * i / dim)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows, dtype=positions.dtype)
