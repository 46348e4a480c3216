# mistake: overwrites the received mass in every chunk instead of adding it up.
import math

import torch


def statistics(q, k, chunk):
    entropy = []
    for part in q.split(chunk):
        scores = part @ k.T / math.sqrt(q.shape[-1])
        w = scores.softmax(-1)
        entropy.append(scores.logsumexp(-1) - (w * scores).sum(-1))
        received = w.sum(0)
    return torch.cat(entropy), received
