# mistake: alpha is the logarithm of the ratio of falls, not divided by log r
import math


def fit_power_law(sizes, losses):
    r = sizes[1] / sizes[0]
    ratio = (losses[0] - losses[1]) / (losses[1] - losses[2])
    alpha = math.log(ratio)
    A = (losses[0] - losses[1]) / (sizes[0] ** -alpha - sizes[1] ** -alpha)
    E = losses[0] - A / sizes[0] ** alpha
    return E, A, alpha


def spend_compute(compute, A, alpha, B, beta):
    N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * (compute / 6) ** (beta / (alpha + beta))
    return N, compute / (6 * N)
