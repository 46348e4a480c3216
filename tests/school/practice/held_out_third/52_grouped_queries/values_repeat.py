# mistake: the keys are interleaved, the values are repeated as a whole
import math


def grouped_attention(q, k, v):
    n = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(n, dim=1)
    v = v.repeat(1, n, 1, 1)
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return weights @ v
