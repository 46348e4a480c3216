# mistake: moves the floor division to the keys, which are now rounded instead of the scores.
import math


def attention(q, k, v):
    D = q.shape[-1]
    scores = q @ (k // math.sqrt(D)).transpose(-2, -1)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out, weights
