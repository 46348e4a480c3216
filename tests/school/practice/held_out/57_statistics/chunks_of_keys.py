# mistake: two at once: splits the keys, so softmax runs over each chunk alone, and keeps the entropy of the last chunk.
import math

import torch


def statistics(q, k, chunk):
    received = []
    for keys in k.split(chunk):
        w = (q @ keys.T / math.sqrt(q.shape[-1])).softmax(-1)
        entropy = torch.special.entr(w).sum(-1)
        received.append(w.sum(0))
    return entropy, torch.cat(received)
