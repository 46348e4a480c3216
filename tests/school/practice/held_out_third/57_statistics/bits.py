# mistake: the entropy is in bits, with log2
import math

import torch


def statistics(q, k, chunk):
    e, r = [], 0
    for p in q.split(chunk):
        w = torch.softmax(p @ k.T / math.sqrt(q.shape[-1]), -1)
        e.append(-torch.where(w > 0, w * w.clamp(min=1e-45).log2(), 0.0).sum(-1))
        r = r + w.sum(0)
    return torch.cat(e), r
