# mistake: overwrites the weights with those after dropout and returns them
import math


def attention(q, k, v, dropout=None):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ v, weights
