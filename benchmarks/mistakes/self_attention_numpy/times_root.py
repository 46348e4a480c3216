# mistake: multiplied with the root
import numpy as np
def self_attention(Q, K, V):
    s = Q @ K.T * np.sqrt(Q.shape[1])
    e = np.exp(s - s.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)) @ V
