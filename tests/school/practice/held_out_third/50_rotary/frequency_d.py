# mistake: the exponent is -i / D instead of -i / P
import torch


def rotary(q, k, positions, base=10000.0):
    D = q.shape[-1]
    P = D // 2
    theta = positions[:, None] * base ** -(torch.arange(P) / D)
    cos, sin = theta.cos(), theta.sin()

    def turn(x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)

    return turn(q), turn(k)
