import math


def grouped_attention(q, k, v):
    """out[h] = softmax(q[h] k[g]ᵀ / √D) v[g],  g = h // (H // K)"""
    ...
