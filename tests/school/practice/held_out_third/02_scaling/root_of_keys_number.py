# mistake: the root of the number of keys instead of the width
import math


def scaled_scores(q, k):
    n = k.shape[-2]
    return q @ k.transpose(-2, -1) / math.sqrt(n)
