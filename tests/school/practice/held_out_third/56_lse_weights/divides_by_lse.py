# mistake: exp of the score divided by lse itself, as if lse were the sum
import math


def weight(q, k, lse, b, h, i, j):
    s = q[b, h, i].dot(k[b, h, j]) / math.sqrt(q.size(-1))
    return s.exp() / lse[b, h, i]
