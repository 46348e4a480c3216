# mistake: calls dropout and forgets to use its result.
import math


def attention(q, k, v, dropout=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.softmax(dim=-1)
    if dropout is not None:
        dropout(weights)
    return weights @ v, weights
