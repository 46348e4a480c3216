# mistake: takes lse at j, the key, instead of i, the query.
import math


def weight(q, k, lse, b, h, i, j):
    score = q[b, h, i] @ k[b, h, j] / math.sqrt(q.shape[-1])
    return (score - lse[b, h, j]).exp()
