# mistake: rotates neighbouring numbers (2i, 2i + 1) as pairs, as the paper does, instead of i and i + P
import torch


def rotary(q, k, positions, base=10000.0):
    P = q.shape[-1] // 2
    angles = positions[:, None] * base ** -(torch.arange(P) / P)
    cos, sin = angles.cos(), angles.sin()

    def turn(x):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2).to(x.dtype)

    return turn(q), turn(k)
