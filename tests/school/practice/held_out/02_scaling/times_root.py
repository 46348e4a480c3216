# mistake: multiplies by the root of the width where it should divide.
import math


def scaled_scores(q, k):
    return (q @ k.transpose(-2, -1)) * math.sqrt(q.shape[-1])
