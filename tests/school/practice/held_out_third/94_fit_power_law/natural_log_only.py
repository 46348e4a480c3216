# mistake: alpha is the log of the ratio of falls, not divided by log r
import math


def fit_power_law(sizes, losses):
    a, b, c = losses
    ratio = (a - b) / (b - c)
    alpha = math.log(ratio)
    E = c - (b - c) / (ratio - 1)
    A = (a - E) * sizes[0] ** alpha
    return E, A, alpha


def spend_compute(compute, A, alpha, B, beta):
    N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * (compute / 6) ** (beta / (alpha + beta))
    return N, compute / (6 * N)
