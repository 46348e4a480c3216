# mistake: divides by the sum over the whole matrix
import numpy as np
def self_attention(Q, K, V):
    s = Q @ K.T / np.sqrt(Q.shape[1])
    e = np.exp(s - s.max())
    return (e / e.sum()) @ V
