# mistake: only the queries are rotated
import torch


def rotary(q, k, positions, base=10000.0):
    P = q.shape[-1] // 2
    angles = positions[:, None] * base ** (-torch.arange(P) / P)
    a, b = q.chunk(2, dim=-1)
    q2 = torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), -1)
    return q2.to(q.dtype), k
