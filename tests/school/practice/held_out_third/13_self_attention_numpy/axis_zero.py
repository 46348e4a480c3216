# mistake: softmax normalises over axis 0
import numpy as np


def self_attention(Q, K, V):
    S = Q @ K.T / np.sqrt(Q.shape[1])
    E = np.exp(S - S.max(axis=0))
    W = E / E.sum(axis=0)
    return W @ V
