# correct: if and else instead of min
import math


def learning_rate(step, dim, warmup):
    peak = 1 / math.sqrt(dim * warmup)
    if step < warmup:
        return peak * step / warmup
    return peak * math.sqrt(warmup / step)
