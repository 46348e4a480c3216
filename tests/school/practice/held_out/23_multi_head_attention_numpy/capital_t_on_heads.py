# mistake: k.T reverses all three dimensions of the keys.
import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    L, C = Q.shape
    q, k, v = (M.reshape(L, n_heads, -1).transpose(1, 0, 2) for M in (Q, K, V))
    s = q @ k.T / np.sqrt(C // n_heads)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    w = e / e.sum(axis=-1, keepdims=True)
    return (w @ v).transpose(1, 0, 2).reshape(L, C)
