# mistake: lse is read at the key's index instead of the query's
import math


def weight(q, k, lse, b, h, i, j):
    score = q[b, h, i] @ k[b, h, j] / math.sqrt(q.shape[-1])
    return (score - lse[b, h, min(j, lse.shape[-1] - 1)]).exp()
