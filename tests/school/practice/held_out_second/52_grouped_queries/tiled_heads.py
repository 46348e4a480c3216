# mistake: repeats the whole set of key-value heads (repeat), so that head h reads key-value head h % K
import math


def grouped_attention(q, k, v):
    n = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, n, 1, 1), v.repeat(1, n, 1, 1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.softmax(dim=-1) @ v
