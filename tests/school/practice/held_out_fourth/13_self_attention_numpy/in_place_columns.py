# mistake: two at once: scales Q in place, and softmax runs down the columns
import numpy as np


def self_attention(Q, K, V):
    Q /= np.sqrt(Q.shape[1])
    S = np.dot(Q, K.T)
    S = S - S.max(axis=0)
    P = np.exp(S)
    P = P / P.sum(axis=0)
    return np.dot(P, V)
