# mistake: math.isqrt rounds the root down to a whole number.
import math


def scaled_scores(q, k):
    return q @ k.transpose(-2, -1) / math.isqrt(q.shape[-1])
