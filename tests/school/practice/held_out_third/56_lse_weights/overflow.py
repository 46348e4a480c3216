# mistake: exp of score divided by exp of lse, which overflows for large scores
import math


def weight(q, k, lse, b, h, i, j):
    score = (q[b, h, i] * k[b, h, j]).sum() / math.sqrt(q.shape[-1])
    return score.exp() / lse[b, h, i].exp()
