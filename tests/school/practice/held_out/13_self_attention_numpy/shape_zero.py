# mistake: takes Q.shape[0], the length, for the width under the root.
import numpy as np


def self_attention(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[0])
    scores = scores - np.max(scores, axis=1, keepdims=True)
    w = np.exp(scores)
    w = w / w.sum(axis=1, keepdims=True)
    return w @ V
