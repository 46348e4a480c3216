# mistake: keeps the floor division and casts its result to float.
import math


def attention(q, k, v):
    D = q.shape[-1]
    scores = (q @ k.transpose(-2, -1) // math.sqrt(D)).float()
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out, weights
