# correct: each row in a loop, with a helper for softmax and np.average for the mean
import numpy as np


def _softmax(row):
    e = np.exp(row - np.max(row))
    return e / np.sum(e)


def self_attention(Q, K, V):
    D = K.shape[1]
    return np.array([np.average(V, axis=0, weights=_softmax(K @ q / D**0.5)) for q in Q])
