# correct: the repair multiplies by the inverse root
import math


def attention(q, k, v):
    """out = softmax(q kᵀ / √D) v; returns (out, weights)"""
    D = q.shape[-1]
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(D))
    weights = scores.softmax(dim=-1)
    return weights @ v, weights
