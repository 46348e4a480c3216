# mistake: step is thought to start at 0, so 1 is added
import math


def learning_rate(step, dim, warmup):
    s = step + 1
    return min(1 / math.sqrt(s), s / warmup**1.5) / math.sqrt(dim)
