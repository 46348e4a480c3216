import math


def attention(q, k, v):
    """out = softmax(q kᵀ / √D) v; returns (out, weights)"""
    D = q.shape[-1]
    scores = q @ k.transpose(-2, -1) // math.sqrt(D)  # (..., L, D) → (..., L, S)
    weights = scores.softmax(dim=-1)
    out = weights @ v  # (..., L, S) × (..., S, E) → (..., L, E)
    return out, weights
