import numpy as np


def self_attention(Q, K, V):
    """softmax(Q Kᵀ / √D) V"""
    ...
