# correct: row by row in Python loops
import math

import numpy as np


def self_attention(Q, K, V):
    rows = []
    for query in Q:
        dots = [float(np.dot(query, key)) / math.sqrt(len(query)) for key in K]
        top = max(dots)
        exps = [math.exp(dot - top) for dot in dots]
        total = sum(exps)
        rows.append(sum((e / total) * value for e, value in zip(exps, V)))
    return np.array(rows)
