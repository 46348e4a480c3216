# mistake: returns the mean weight of each key over the queries instead of the sum.
import math

import torch


def statistics(q, k, chunk):
    entropy, received = [], 0
    for start in range(0, len(q), chunk):
        w = (q[start : start + chunk] @ k.T / math.sqrt(q.shape[-1])).softmax(-1)
        entropy.append(torch.special.entr(w).sum(-1))
        received = received + w.sum(0)
    return torch.cat(entropy), received / len(q)
