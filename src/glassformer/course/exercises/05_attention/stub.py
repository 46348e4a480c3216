import math


def attention(q, k, v):
    """out = softmax(q kᵀ / √D) v"""
    ...
