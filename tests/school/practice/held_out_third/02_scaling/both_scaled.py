# mistake: q and k are each divided by sqrt(D), so the scores are divided by D
import math


def scaled_scores(q, k):
    s = math.sqrt(q.shape[-1])
    return (q / s) @ (k / s).transpose(-2, -1)
