# mistake: two at once: rotates in the other direction, and ignores the positions: counts 0, 1, 2 …
import torch


def rotary(q, k, positions, base=10000.0):
    L, D = q.shape[-2:]
    theta = torch.outer(torch.arange(L).to(q), base ** (-torch.arange(0, D, 2).to(q) / D))
    c, s = torch.cos(theta), torch.sin(theta)
    result = []
    for x in (q, k):
        a, b = x.chunk(2, dim=-1)
        result.append(torch.cat((a * c + b * s, b * c - a * s), dim=-1))
    return tuple(result)
