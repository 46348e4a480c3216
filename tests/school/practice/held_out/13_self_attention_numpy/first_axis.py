# mistake: softmax runs over axis 0, the queries.
import numpy as np


def self_attention(Q, K, V):
    scores = Q @ K.T / np.sqrt(Q.shape[-1])
    e = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = e / e.sum(axis=0, keepdims=True)
    return weights @ V
