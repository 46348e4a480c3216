# mistake: two at once: leaves the floor division and changes softmax to the queries' dimension.
import math


def attention(q, k, v):
    D = q.shape[-1]
    scores = q @ k.transpose(-2, -1) // math.sqrt(D)
    weights = scores.softmax(dim=-2)
    out = weights @ v
    return out, weights
