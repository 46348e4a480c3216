# mistake: repeat instead of repeat_interleave: head h reads key-value head h % K
import math


def grouped_attention(q, k, v):
    n = q.shape[1] // k.shape[1]
    k = k.repeat(1, n, 1, 1)
    v = v.repeat(1, n, 1, 1)
    return (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v
