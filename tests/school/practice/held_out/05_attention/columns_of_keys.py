# correct: keeps the transposed matrix, with softmax over dimension −2 where the keys are
import math


def attention(q, k, v):
    scores = k @ q.transpose(-2, -1) / math.sqrt(k.shape[-1])  # (..., S, L)
    weights = scores.softmax(dim=-2)
    return weights.transpose(-2, -1) @ v
