# mistake: reshapes the heads to (L, C) without moving the length to the front.
import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    L, C = Q.shape
    D = C // n_heads
    q = Q.reshape(L, n_heads, D).swapaxes(0, 1)
    k = K.reshape(L, n_heads, D).swapaxes(0, 1)
    v = V.reshape(L, n_heads, D).swapaxes(0, 1)
    s = np.matmul(q, k.swapaxes(1, 2)) / np.sqrt(D)
    s = s - s.max(axis=2, keepdims=True)
    w = np.exp(s) / np.exp(s).sum(axis=2, keepdims=True)
    return np.matmul(w, v).reshape(L, C)
