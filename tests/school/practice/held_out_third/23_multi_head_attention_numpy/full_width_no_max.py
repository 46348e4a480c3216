# mistake: two at once: scaled by the whole width, and no maximum subtracted so large scores overflow
import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    D = Q.shape[1] // n_heads
    outs = []
    for h in range(n_heads):
        q, k, v = Q[:, h * D : (h + 1) * D], K[:, h * D : (h + 1) * D], V[:, h * D : (h + 1) * D]
        e = np.exp(q @ k.T / np.sqrt(Q.shape[1]))
        outs.append(e / e.sum(axis=1, keepdims=True) @ v)
    return np.concatenate(outs, axis=1)
