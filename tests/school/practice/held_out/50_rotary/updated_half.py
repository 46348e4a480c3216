# mistake: overwrites a before b is computed from it, so the second half uses the rotated first half.
import torch


def rotary(q, k, positions, base=10000.0):
    def rotate(x):
        P = x.shape[-1] // 2
        theta = positions[:, None] * base ** -(torch.arange(P, dtype=torch.float64) / P)
        a, b = x.chunk(2, dim=-1)
        a = a * theta.cos() - b * theta.sin()
        b = b * theta.cos() + a * theta.sin()
        return torch.cat((a, b), dim=-1).to(x.dtype)

    return rotate(q), rotate(k)
