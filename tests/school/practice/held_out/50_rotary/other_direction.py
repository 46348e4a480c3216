# mistake: rotates in the opposite direction, with the signs of the sines swapped.
import torch


def rotary(q, k, positions, base=10000.0):
    P = q.shape[-1] // 2
    angles = positions[:, None] * base ** -(torch.arange(P, dtype=torch.float64) / P)

    def rotate(x):
        a, b = x.chunk(2, dim=-1)
        rotated = torch.cat(
            (a * angles.cos() + b * angles.sin(), b * angles.cos() - a * angles.sin()), dim=-1
        )
        return rotated.to(x.dtype)

    return rotate(q), rotate(k)
