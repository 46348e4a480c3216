# mistake: divides the weights by √D after softmax, not the scores before it.
import math


def attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    weights = scores.softmax(dim=-1) / math.sqrt(q.shape[-1])
    return weights @ v
