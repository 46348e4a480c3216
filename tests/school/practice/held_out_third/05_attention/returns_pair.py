# mistake: returns the pair (out, weights) where only out is asked for
import math


def attention(q, k, v):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return weights @ v, weights
