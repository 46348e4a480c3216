# mistake: the weights returned are those after dropout
import math


def attention(q, k, v, dropout=None):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ v, weights
