# mistake: the angles are float32, and so are the results, whatever the dtype of q and k
import torch


def rotary(q, k, positions, base=10000.0):
    half = q.shape[-1] // 2
    freqs = base ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = positions.float()[:, None] * freqs
    cos, sin = angle.cos(), angle.sin()

    def turn(x):
        a, b = x.float().split(half, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    return turn(q), turn(k)
