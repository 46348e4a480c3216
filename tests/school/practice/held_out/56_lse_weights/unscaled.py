# mistake: two at once: the score is not divided by √D, and a Python float is returned.
import math


def weight(q, k, lse, b, h, i, j):
    score = (q[b, h, i] * k[b, h, j]).sum()
    return math.exp(score.item() - lse[b, h, i].item())
