# correct: NumPy's minimum and power, turned into a float
import numpy as np


def learning_rate(step, dim, warmup):
    rise = step * np.power(float(warmup), -1.5)
    fall = np.power(float(step), -0.5)
    return float(np.minimum(rise, fall) / np.sqrt(dim))
