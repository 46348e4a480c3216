# mistake: rotated the other way round: the signs of the sines are exchanged
import torch


def rotary(q, k, positions, base=10000.0):
    P = q.shape[-1] // 2
    theta = positions[:, None] * base ** -(torch.arange(P) / P)
    c, s = torch.cos(theta), torch.sin(theta)

    def f(x):
        a, b = x[..., :P], x[..., P:]
        return torch.cat([a * c + b * s, b * c - a * s], dim=-1).type_as(x)

    return f(q), f(k)
