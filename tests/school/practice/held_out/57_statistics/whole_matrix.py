# mistake: ignores chunk and builds the whole L × S matrix.
import math

import torch


def statistics(q, k, chunk):
    weights = (q @ k.T / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return torch.special.entr(weights).sum(-1), weights.sum(0)
