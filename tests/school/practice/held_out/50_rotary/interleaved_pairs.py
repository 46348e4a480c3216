# mistake: pairs neighbours, 2i and 2i + 1, as in the paper, where the halves are to be paired.
import torch


def rotary(q, k, positions, base=10000.0):
    P = q.shape[-1] // 2
    angles = positions[:, None] * base ** -(torch.arange(P, dtype=torch.float64) / P)
    cos, sin = angles.cos(), angles.sin()

    def rotate(x):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2).to(x.dtype)

    return rotate(q), rotate(k)
