# mistake: Q is scaled in place, which changes the caller's array
import numpy as np


def self_attention(Q, K, V):
    Q /= np.sqrt(Q.shape[-1])
    S = Q @ K.T
    S = S - S.max(axis=-1, keepdims=True)
    E = np.exp(S)
    return E / E.sum(axis=-1, keepdims=True) @ V
