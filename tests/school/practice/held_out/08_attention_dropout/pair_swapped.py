# mistake: returns (weights, out) where (out, weights) is wanted.
import math


def attention(q, k, v, dropout=None):
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    kept = dropout(weights) if dropout is not None else weights
    return weights, kept @ v
