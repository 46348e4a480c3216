# mistake: two at once: the floor division is moved to the square root (isqrt), and D is read from the values
import math


def attention(q, k, v):
    D = v.shape[-1]
    scores = q @ k.transpose(-2, -1) / math.isqrt(D)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out, weights
