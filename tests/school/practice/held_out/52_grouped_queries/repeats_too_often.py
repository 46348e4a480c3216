# mistake: repeats each key-value head K times, where H // K copies are needed.
import math


def grouped_attention(q, k, v):
    K = k.shape[1]
    k = k.repeat_interleave(K, dim=1)
    v = v.repeat_interleave(K, dim=1)
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return weights @ v
