# correct: np.split into slices, a loop, and np.hstack
import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    heads = []
    for q, k, v in zip(*(np.split(m, n_heads, axis=1) for m in (Q, K, V))):
        s = np.einsum("ld,sd->ls", q, k) / q.shape[1] ** 0.5
        s = np.exp(s - s.max(axis=1)[:, np.newaxis])
        heads.append((s / s.sum(axis=1)[:, np.newaxis]).dot(v))
    return np.hstack(heads)
