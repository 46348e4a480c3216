# mistake: neighbouring numbers form the pairs, instead of i and i + P
import torch


def rotary(q, k, positions, base=10000.0):
    P = q.shape[-1] // 2
    theta = positions[:, None] * base ** -(torch.arange(P) / P)
    cos, sin = theta.cos(), theta.sin()

    def turn(x):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2).to(x.dtype)

    return turn(q), turn(k)
