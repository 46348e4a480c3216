# mistake: heads joined in reverse order
import numpy as np
def multi_head_attention(Q, K, V, n_heads):
    outs = []
    for q, k, v in zip(np.split(Q, n_heads, 1), np.split(K, n_heads, 1), np.split(V, n_heads, 1)):
        s = q @ k.T / np.sqrt(q.shape[1])
        e = np.exp(s - s.max(1, keepdims=True))
        outs.insert(0, e / e.sum(1, keepdims=True) @ v)
    return np.concatenate(outs, axis=1)
