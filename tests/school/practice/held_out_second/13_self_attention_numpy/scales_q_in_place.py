# mistake: divides Q in place with /=, which changes the array of the caller
import numpy as np


def self_attention(Q, K, V):
    Q /= np.sqrt(Q.shape[-1])
    s = Q @ K.T
    s = np.exp(s - s.max(axis=-1, keepdims=True))
    return s / s.sum(axis=-1, keepdims=True) @ V
