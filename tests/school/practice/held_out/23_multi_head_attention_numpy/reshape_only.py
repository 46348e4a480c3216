# mistake: reshapes straight to (n_heads, L, D), which breaks the rows apart.
import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    L, C = Q.shape
    D = C // n_heads
    q = Q.reshape(n_heads, L, D)
    k = K.reshape(n_heads, L, D)
    v = V.reshape(n_heads, L, D)
    s = q @ k.transpose(0, 2, 1) / np.sqrt(D)
    e = np.exp(s - s.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    return (w @ v).reshape(L, C)
