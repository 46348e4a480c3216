# correct: np.hsplit into heads, a list comprehension, and np.concatenate
import numpy as np


def _rows(scores):
    e = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def multi_head_attention(Q, K, V, n_heads):
    parts = zip(np.hsplit(Q, n_heads), np.hsplit(K, n_heads), np.hsplit(V, n_heads))
    return np.concatenate([_rows(q.dot(k.T) / q.shape[1] ** 0.5).dot(v) for q, k, v in parts], 1)
