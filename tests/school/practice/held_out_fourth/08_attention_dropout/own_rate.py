# mistake: ignores the module that was given and drops with a fixed rate of 0.1
import math

import torch.nn.functional as F


def attention(q, k, v, dropout=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = F.softmax(scores, dim=-1)
    used = weights
    if dropout is not None:
        used = F.dropout(weights, p=0.1, training=dropout.training)
    return used @ v, weights
