# mistake: exponentials are not normalized
import numpy as np
def self_attention(Q, K, V):
    s = Q @ K.T / np.sqrt(Q.shape[1])
    return np.exp(s - s.max(1, keepdims=True)) @ V
