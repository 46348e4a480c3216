# correct: log_softmax gives finite logarithms, collected in lists
import math

import torch


def statistics(q, k, chunk):
    parts = []
    for queries in torch.split(q, chunk):
        log_w = torch.log_softmax(queries @ k.T / math.sqrt(q.size(1)), dim=-1)
        parts.append((-(log_w.exp() * log_w).sum(1), log_w.exp().sum(0)))
    entropy = torch.cat([e for e, _ in parts])
    received = sum(r for _, r in parts)
    return entropy, received
