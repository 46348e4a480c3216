# mistake: scales Q in place, which changes the caller's array.
import numpy as np


def self_attention(Q, K, V):
    Q /= np.sqrt(Q.shape[-1])
    scores = Q @ K.T
    scores -= scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ V
