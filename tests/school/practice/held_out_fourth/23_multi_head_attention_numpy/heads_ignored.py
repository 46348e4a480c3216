# mistake: ignores n_heads: one head over the whole width
import numpy as np


def multi_head_attention(Q, K, V, n_heads):
    D = Q.shape[-1]
    S = Q @ K.T / D**0.5
    S -= S.max(-1, keepdims=True)
    W = np.exp(S)
    W /= W.sum(-1, keepdims=True)
    return W @ V
