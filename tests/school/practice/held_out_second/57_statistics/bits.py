# mistake: measures the entropy in bits, with log2
import math

import torch


def statistics(q, k, chunk):
    entropy, received = [], torch.zeros(k.shape[0])
    for part in q.split(chunk):
        w = (part @ k.T / math.sqrt(q.shape[-1])).softmax(-1)
        entropy.append(-(w * torch.log2(w.clamp(min=1e-30))).sum(-1))
        received = received + w.sum(0)
    return torch.cat(entropy), received
