# mistake: divides by the root of the width of the values instead of that of the queries.
import math


def attention(q, k, v):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(v.shape[-1])).softmax(-1)
    return weights @ v
