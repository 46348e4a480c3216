# mistake: in spend_compute the exponent of compute is alpha instead of beta
import math


def fit_power_law(sizes, losses):
    l1, l2, l3 = losses
    q = (l1 - l2) / (l2 - l3)
    alpha = math.log(q, sizes[1] / sizes[0])
    A = (l1 - l2) / (sizes[0] ** -alpha - sizes[1] ** -alpha)
    return l1 - A / sizes[0] ** alpha, A, alpha


def spend_compute(compute, A, alpha, B, beta):
    s = alpha + beta
    N = (alpha * A / (beta * B)) ** (1 / s) * (compute / 6) ** (alpha / s)
    return N, compute / 6 / N
