# correct: plain loops over queries and keys
import math

import numpy as np


def self_attention(Q, K, V):
    n, width = Q.shape
    result = np.zeros((n, V.shape[1]), dtype=V.dtype)
    for i in range(n):
        row = [float(np.dot(Q[i], K[j])) / math.sqrt(width) for j in range(K.shape[0])]
        highest = max(row)
        row = [math.exp(s - highest) for s in row]
        total = sum(row)
        for j, share in enumerate(row):
            result[i] += share / total * V[j]
    return result
