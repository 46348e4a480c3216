# mistake: rotates the queries and returns the keys unchanged.
import torch


def rotary(q, k, positions, base=10000.0):
    P = q.shape[-1] // 2
    frequencies = base ** -(torch.arange(P, dtype=torch.float64) / P)
    angles = positions[:, None] * frequencies
    a, b = q[..., :P], q[..., P:]
    rotated = torch.cat(
        [a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], dim=-1
    )
    return rotated.to(q.dtype), k
