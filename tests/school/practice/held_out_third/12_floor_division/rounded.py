# mistake: the // is replaced by / but the scores are still rounded
import math


def attention(q, k, v):
    D = q.shape[-1]
    scores = (q @ k.transpose(-2, -1) / math.sqrt(D)).round()
    weights = scores.softmax(dim=-1)
    out = weights @ v
    return out, weights
