# mistake: repeat_interleave without dim flattens the tensor.
import math


def grouped_attention(q, k, v):
    n = q.size(1) // k.size(1)
    k = k.repeat_interleave(n)
    v = v.repeat_interleave(n)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return scores.softmax(-1) @ v
