import math


def attention(q, k, v, dropout=None):
    """out = dropout(softmax(q kᵀ / √D)) v; returns (out, weights)"""
    ...
