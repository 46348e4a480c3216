# mistake: repeat puts whole copies one after another, so head h reads key-value head h % K.
import math


def grouped_attention(q, k, v):
    groups = q.shape[1] // k.shape[1]
    k = k.repeat(1, groups, 1, 1)
    v = v.repeat(1, groups, 1, 1)
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return weights @ v
