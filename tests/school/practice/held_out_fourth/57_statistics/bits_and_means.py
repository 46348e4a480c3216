# mistake: two at once: the entropy is in bits, and received is the mean over the queries
import math

import torch


def statistics(q, k, chunk):
    received = torch.zeros(k.shape[0], dtype=q.dtype)
    entropies = []
    for part in torch.split(q, chunk):
        w = torch.softmax(part @ k.T / math.sqrt(q.shape[1]), dim=-1)
        entropies.append(-torch.xlogy(w, w).sum(-1) / math.log(2))
        received = received + w.sum(0)
    return torch.cat(entropies), received / q.shape[0]
