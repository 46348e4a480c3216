# correct: the bar in logits, at most −log(min_p) below the largest, then one softmax
import math

import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    z = logits / temperature
    if min_p > 0:
        bar = z.max(dim=1, keepdim=True).values + math.log(min_p)
        z = torch.where(z < bar, torch.full_like(z, -math.inf), z)
    return torch.softmax(z, dim=1)
