# mistake: divides exp(score) by lse, as if it were the sum itself.
import math


def weight(q, k, lse, b, h, i, j):
    score = (q[b, h, i] * k[b, h, j]).sum() / math.sqrt(q.shape[-1])
    return score.exp() / lse[b, h, i]
