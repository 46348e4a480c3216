# mistake: repeats each key-value head K times instead of H // K times
import math


def grouped_attention(q, k, v):
    n = k.shape[1]
    k, v = k.repeat_interleave(n, dim=1), v.repeat_interleave(n, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.softmax(dim=-1) @ v
