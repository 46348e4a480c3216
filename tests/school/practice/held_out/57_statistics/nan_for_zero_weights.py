# mistake: computes w · log w directly, which is NaN where a weight is 0.
import math

import torch


def statistics(q, k, chunk):
    entropies = []
    received = torch.zeros(k.shape[0], dtype=k.dtype)
    for part in q.split(chunk):
        w = torch.softmax(part @ k.T / math.sqrt(k.shape[1]), dim=-1)
        entropies.append(-(w * torch.log(w)).sum(dim=-1))
        received = received + w.sum(dim=0)
    return torch.cat(entropies), received
