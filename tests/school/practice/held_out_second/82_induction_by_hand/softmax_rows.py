# mistake: takes a softmax of the masked matches instead of dividing by the sum, so that other places get weight too
import math

import torch


def previous_head(x):
    return torch.cat([torch.zeros_like(x[:1]), x[:-1]])


def predict_next(x):
    scores = x @ previous_head(x).T
    later = torch.ones_like(scores).triu(1).bool()
    weights = scores.masked_fill(later, -math.inf).softmax(-1)
    return weights @ x
