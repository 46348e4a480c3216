# mistake: the exponent is −i / D instead of −i / P, so that frequencies fall only half as fast
import torch


def rotary(q, k, positions, base=10000.0):
    D = q.shape[-1]
    angles = positions[:, None] * base ** -(torch.arange(D // 2) / D)
    cos, sin = angles.cos(), angles.sin()

    def turn(x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)

    return turn(q), turn(k)
