# correct: an if for the two phases, with math.sqrt
import math


def learning_rate(step, dim, warmup):
    if step < warmup:
        return step / (math.sqrt(dim) * warmup * math.sqrt(warmup))
    return 1 / math.sqrt(dim * step)
