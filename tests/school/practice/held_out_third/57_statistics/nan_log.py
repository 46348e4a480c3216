# mistake: weight times log weight without care for 0, which gives NaN
import math

import torch


def statistics(q, k, chunk):
    entropies = []
    received = torch.zeros(len(k), dtype=q.dtype)
    for start in range(0, len(q), chunk):
        w = (q[start : start + chunk] @ k.T / math.sqrt(q.shape[1])).softmax(dim=-1)
        entropies.append(-(w * w.log()).sum(dim=-1))
        received += w.sum(dim=0)
    return torch.cat(entropies), received
