# correct: the form with rotate_half, cosines and sines repeated for both halves
import torch


def rotary(q, k, positions, base=10000.0):
    D = q.shape[-1]
    inverse = 1.0 / base ** (torch.arange(0, D, 2, dtype=torch.float64) / D)
    angles = torch.outer(positions.to(torch.float64), inverse).repeat(1, 2)
    cos, sin = angles.cos(), angles.sin()

    def apply(x):
        a, b = x[..., : D // 2], x[..., D // 2 :]
        return (x * cos + torch.cat([-b, a], dim=-1) * sin).to(x.dtype)

    return apply(q), apply(k)
