# mistake: leaves out softmax and multiplies the scaled scores with the values.
import math


def attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores @ v
