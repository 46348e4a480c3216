# correct: splits columns, attends head by head and stacks side by side
import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    def attend(q, k, v):
        s = q @ k.T / np.sqrt(q.shape[1])
        e = np.exp(s - s.max(1)[:, None])
        return e @ v / e.sum(1)[:, None]

    slices = [np.split(M, n_heads, axis=1) for M in (Q, K, V)]
    return np.hstack([attend(*triple) for triple in zip(*slices)])
