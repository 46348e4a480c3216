# mistake: the scale is applied to the weights, after softmax
import math


def attention(q, k, v):
    weights = (q @ k.transpose(-2, -1)).softmax(dim=-1)
    weights = weights / math.sqrt(q.shape[-1])
    return weights @ v
