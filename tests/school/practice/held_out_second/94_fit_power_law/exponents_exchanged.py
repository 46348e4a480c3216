# mistake: spend_compute raises the compute to alpha / (alpha + beta) for N, which is the exponent of D
import math


def fit_power_law(sizes, losses):
    r = sizes[1] / sizes[0]
    ratio = (losses[0] - losses[1]) / (losses[1] - losses[2])
    alpha = math.log(ratio) / math.log(r)
    A = (losses[0] - losses[1]) / (sizes[0] ** -alpha - sizes[1] ** -alpha)
    return losses[0] - A / sizes[0] ** alpha, A, alpha


def spend_compute(compute, A, alpha, B, beta):
    G = (alpha * A / (beta * B)) ** (1 / (alpha + beta))
    N = G * (compute / 6) ** (alpha / (alpha + beta))
    return N, compute / (6 * N)
